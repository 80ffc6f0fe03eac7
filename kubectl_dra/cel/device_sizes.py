"""The sizes that Kubernetes assumes for everything reachable from ``device``: the limits of the resource.k8s.io API."""

from __future__ import annotations

from kubectl_dra.api.limits import MAX_ATTRIBUTE_VALUE, MAX_DEVICE_ENTRIES, MAX_DOMAIN, MAX_DRIVER, MAX_IDENTIFIER
from kubectl_dra.cel.cost_model import Size, fixed

Path = tuple[str, ...]
"""The path to a value, such as ``("device", "attributes", "@values", "model")``."""


def device_sizes(path: Path) -> Size | None:
    """Largest size of the value at ``path``, starting from ``device``; None where Kubernetes assumes nothing.

    A capacity selected by field (``device.capacity[d].memory``) is unbounded, although one selected by index
    in the same map (``["memory"]``) is not.
    """
    if not path or path[0] != "device":
        return None
    if len(path) == 1:
        return fixed(0)
    field, rest = path[1], path[2:]
    if field == "driver":
        return None if rest else Size(0, MAX_DRIVER)
    if field == "allowMultipleAllocations":
        return None if rest else Size(0, 1)
    if field not in ("attributes", "capacity"):
        return None
    if not rest:
        return Size(0, MAX_DEVICE_ENTRIES)
    if rest[0] == "@keys":
        return None if rest[1:] else Size(0, MAX_DOMAIN)
    if rest[0] not in ("@items", "@values"):
        return None
    rest = rest[1:]
    if not rest:
        return Size(0, MAX_DEVICE_ENTRIES)
    if len(rest) > 1:
        return None
    if rest[0] == "@keys":
        return Size(0, MAX_IDENTIFIER)
    if field == "attributes":
        return Size(0, MAX_ATTRIBUTE_VALUE)
    return fixed(0) if rest[0] in ("@items", "@values") else None
