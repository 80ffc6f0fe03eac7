"""What the API server of Kubernetes would say about manifests, computed offline.

    verdict = check(manifest, namespaces={"default": {}})

As on the server, decoding errors (HTTP 400) come before validation errors (422) and hide them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import ServerVerdict, Violation, nearest
    from kubectl_dra.admission.server.verdict import check, check_update, check_written_status, is_known

__all__ = ["ServerVerdict", "Violation", "check", "check_update", "check_written_status", "is_known", "nearest"]

_HOMES = {
    "ServerVerdict": "model",
    "Violation": "model",
    "check": "verdict",
    "check_update": "verdict",
    "check_written_status": "verdict",
    "is_known": "verdict",
    "nearest": "model",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # Found here from now on, without asking again.
    found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return found
