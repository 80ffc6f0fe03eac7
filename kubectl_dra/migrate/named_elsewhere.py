"""Known resources that an object names in other places than requests of pods: settings, arguments, texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.manifests.changes import Path
from kubectl_dra.migrate.prefilter import named_in
from kubectl_dra.migrate.requests_in_texts import EmbeddedAsk, asked
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, is_extended

OTHER_USES: Final = frozenset(
    ("apiVersion", "kind", "tolerations", "annotations", "labels", "nodeSelector", "affinity", "taints", "image")
)
"""Fields with values that look like resource names but request nothing."""
# The keys of taints and labels, wherever expressions and tolerations stand.
_LABELS: Final = frozenset(("key", "matchLabels", "nodeLabels", "nodeTaints"))


def named(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> Iterator[EmbeddedAsk]:
    """Every field of an object that is named after a known resource, and every value that names some."""
    for field, value in raw.items():
        if field not in ("metadata", "status"):
            yield from _named(value, (field,), catalogue)


def _named(value: Any, path: Path, catalogue: VendorCatalogue) -> Iterator[EmbeddedAsk]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            if key in OTHER_USES or key in _LABELS:
                continue
            if is_extended(key):
                if below not in (0, "0") and catalogue.moves(key, value):
                    yield EmbeddedAsk((*path, key), (key,))
            elif key == "requests" and isinstance(below, Mapping) and isinstance(value.get("limits"), Mapping):
                # A request beside its limit is the same one.
                rest = {name: amount for name, amount in below.items() if name not in value["limits"]}
                yield from _named(rest, (*path, key), catalogue)
            else:
                yield from _named(below, (*path, key), catalogue)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _named(item, (*path, index), catalogue)
    elif isinstance(value, str) and ("/" in value or "~1" in value):
        # A parameter of Helm has the dots of a name escaped.
        escaped = asked(value, catalogue) if "\\" in value and "\n" not in value else ()
        names = dict.fromkeys((*escaped, *named_in(value, catalogue)))
        if names:
            yield EmbeddedAsk(path, tuple(names))
