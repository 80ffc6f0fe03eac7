"""The pod specs of an object: of known kinds, of kinds that a file of the user names, and by their shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.workloads import (
    SPECS,
    TEMPLATES,
    WorkloadPodSpec,
    evident_specs,
    key_of,
    pod_specs,
    specs_at,
)
from kubectl_dra.migrate.claimless_kinds import CLAIMLESS, NEVER
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

# Their values are the input of other programs, whatever they look like.
_VALUES: Final = frozenset(("values", "valuesObject", "parameters"))


class PodsFound(NamedTuple):
    """Pod specs, and with ``guessed`` only by what they look like."""

    specs: tuple[WorkloadPodSpec, ...]
    guessed: bool = False


def pods_of(raw: Mapping[str, Any], catalogue: VendorCatalogue) -> PodsFound:
    """The pod specs of an object."""
    key = key_of(raw)
    said = [path for each, path in catalogue.workloads if each == key]
    if said:
        return PodsFound(tuple(spec for path in said for spec in specs_at(raw, path)))
    known = key in TEMPLATES or key in SPECS or key in CLAIMLESS or key[1] in NEVER
    if known or key[0] == "" or key[0].endswith(".k8s.io") or "apiVersion" not in raw:
        return PodsFound(tuple(pod_specs(raw)))
    found = [spec for spec in evident_specs(raw) if not _VALUES.intersection(map(str, spec.path))]
    return PodsFound(tuple(found), bool(found))
