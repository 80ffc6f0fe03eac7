"""Which texts can have something to migrate: told from the text alone, because most files have nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubectl_dra.migrate.vendors import Catalogue

# Anything of DRA, any name of an extended resource, and what people set for accelerators beside it.
_WORDS: Final = re.compile(r"resource\.k8s\.io|resourceClaims|gpu|GPU|nvidia|NVIDIA|neuron|gaudi|tpu|TPU|sriov")
_NAMES: Final = re.compile(
    r"(?<![\w./@:-])(?:requests\.|limits\.)?"
    r"(?!(?:[-a-z0-9]+\.)*(?:kubernetes|k8s)\.io/)((?:[-a-z0-9]+\.)*[-a-z0-9]+/[A-Za-z0-9][-\w.]*)(?![\w/@]|:\S)"
)
_API: Final = re.compile(r"resource\.k8s\.io/v1(?:alpha\d+|beta\d+)")


def relevant(text: str) -> bool:
    """Whether the text can have something to migrate; True too often rather than too rarely."""
    return _WORDS.search(text) is not None or _NAMES.search(text) is not None


def evidence(text: str, catalogue: Catalogue, version: str) -> int | None:
    """Where a text that cannot be read names a resource of the catalogue or another API version; None if nowhere."""
    api = next((found for found in _API.finditer(text) if not found.group().endswith(f"/{version}")), None)
    at = None if api is None else api.start()
    for found in _NAMES.finditer(text):
        if at is not None and found.start() > at:
            break
        if catalogue.resource(found[1]) is not None:
            return found.start()
    return at
