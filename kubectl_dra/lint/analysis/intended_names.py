"""Guesses which name was meant when an object refers to a missing part of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubectl_dra.lint.analysis.claim_requests import items
from kubectl_dra.lint.analysis.pod_claims import uses
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Path, Set, value_at
from kubectl_dra.names import nearest

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation


def meant_name(raw: Mapping[str, Any], found: Violation) -> Fix | None:
    """The fix for an unknown request in a constraint or config, or an unknown claim in a container."""
    path = tuple(str(part) if isinstance(part, str) else part for part in found.path)
    if found.rule == "container-claim-unknown":
        return _claim(raw, path)
    devices = next((value_at(raw, path[:end]) for end in range(len(path)) if path[end - 1 : end] == ("devices",)), None)
    name, beside = value_at(raw, path), value_at(raw, path[:-1])
    if not isinstance(name, str) or not isinstance(beside, list):
        return None
    return _fix(path, name, [known for known in _requests(devices) if known not in beside])


def _claim(raw: Mapping[str, Any], path: Path) -> Fix | None:
    name = value_at(raw, (*path, "name"))
    spec = value_at(raw, path[: path.index("spec") + 1])
    known = [str(entry.get("name")) for entry in items(spec, "resourceClaims") if entry.get("name")]
    if not isinstance(name, str) or not known:
        return None
    used = {used for _, used, _ in uses({"spec": spec})}
    free = [entry for entry in known if entry not in used]
    missing = used - set(known)
    near = nearest(name, (*free, *known))
    beside = [entry.get("name") for entry in items(value_at(raw, path[:-2]), "claims")]
    if near and near[0] in beside:
        return Fix(f'Remove it if "{near[0]}" is meant, which the container has already.')
    if near:
        return Fix(f'Write "{near[0]}"', (Set((*path, "name"), near[0]),), "unsafe")
    if len(free) == 1 and len(missing) == 1:
        # One claim that nobody uses, and one name that nothing has.
        return Fix(f'Write "{free[0]}"', (Set((*path, "name"), free[0]),), "unsafe")
    return None


def _fix(path: Path, name: str, known: Iterable[str]) -> Fix | None:
    near = nearest(name, tuple(known))
    return Fix(f'Write "{near[0]}"', (Set(path, near[0]),), "unsafe") if near else None


def _requests(devices: Any) -> list[str]:
    names = []
    for request in items(devices, "requests"):
        name = str(request.get("name") or "")
        names += [name, *(f"{name}/{sub.get('name')}" for sub in items(request, "firstAvailable"))]
    return names
