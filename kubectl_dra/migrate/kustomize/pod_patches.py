"""Patches that an overlay gets for its pods, where its own patches change what they ask for and cannot say the claims.

They are JSON patches from what is built to what should be, so they need no knowledge of what the overlay's patches do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubectl_dra.manifests.changes import Path, items_at, value_at
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.kustomization import Kustomization
from kubectl_dra.manifests.objects import ObjectKey, object_key
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.workloads import pod_specs
from kubectl_dra.migrate.json_patches import patch_text, pointer_of
from kubectl_dra.migrate.kustomize.overlay_files import Objects, claims_listed, with_claims
from kubectl_dra.migrate.kustomize.repair import CLAIM_FIELDS, BuildDifference, Repaired, listed_in

_CONTAINERS = ("containers", "initContainers")


def pod_patches(
    overlay: Kustomization,
    differences: Sequence[BuildDifference],
    wanted: Objects,
    built: Objects,
    texts: Mapping[str, Source],
) -> Iterator[Repaired]:
    """The kustomization with patches of pods, and the claims that only its pods have.

    ``texts`` are the changed files as they are now, by absolute path.

    Raises:
        EditRefused: a file cannot be changed for certain.
    """
    should = {object_key(raw): raw for raw in wanted}
    is_now = {object_key(raw): raw for raw in built}
    by_object: dict[ObjectKey, list[BuildDifference]] = {}
    for each in differences:
        # A claim that is there is patched itself, unless others need it to say something else.
        other = each.claim is None or (each.found is not None and each.wanted is not None)
        if other and each.path and any(True for _ in pod_specs(should.get(each.object, {}))):
            by_object.setdefault(each.object, []).append(each)
    claims: dict[str, Mapping[str, Any]] = {}
    entries: list[Mapping[str, Any]] = []
    for key, mine in by_object.items():
        operations = list(_operations(overlay, key, mine, should, is_now, claims))
        if not operations:
            continue
        target = {"kind": key[0], "name": _without_affixes(overlay, key[2])}
        entries.append({"target": target, "patch": patch_text(operations)})
    there = items_at(parse(texts.get(overlay.path, overlay.document.source))[0].object, "patches")
    if not entries or any(patch in there for patch in entries):
        # It was tried, and did not help.
        return
    now = dict(texts)
    own = now.get(overlay.path, overlay.document.source)
    for patch in entries:
        now[overlay.path] = own = own.with_text(listed_in(overlay, "patches", patch, now))
    if claims:
        yield with_claims(overlay, list(claims.values()), texts)
        own = own.with_text(claims_listed(overlay, now))
    yield Repaired(overlay.path, own.text, "claims" if claims else "pods")


def _operations(
    overlay: Kustomization,
    key: ObjectKey,
    differences: Sequence[BuildDifference],
    should: Mapping[ObjectKey, Mapping[str, Any]],
    is_now: Mapping[ObjectKey, Mapping[str, Any]],
    claims: dict[str, Mapping[str, Any]],
) -> Iterator[Mapping[str, Any]]:
    """The operations for an object, after a test that its containers are those that are meant; adds to ``claims``."""
    wanted, now = should[key], is_now[key]
    for path in dict.fromkeys(path for each in differences if (path := _container(each.path))):
        yield {"op": "test", "path": pointer_of((*path, "name")), "value": value_at(now, (*path, "name"))}
    for each in differences:
        if each.claim is not None:
            yield from _of_its_own(overlay, key, each.path, should, is_now, claims)
            continue
        pointer, new, old = pointer_of(each.path), value_at(wanted, each.path), value_at(now, each.path)
        if each.path[-1] == "resourceClaims" and new:
            new = [_local(overlay, key, item, old or (), should, is_now, claims) for item in new]
        if new is None:
            yield {"op": "remove", "path": pointer}
        elif old and isinstance(old, list) and isinstance(new, list) and new[: len(old)] == old:
            for item in new[len(old) :]:
                yield {"op": "add", "path": f"{pointer}/-", "value": item}
        else:
            yield {"op": "add" if old is None else "replace", "path": pointer, "value": new}


def _of_its_own(
    overlay: Kustomization,
    key: ObjectKey,
    path: Path,
    should: Mapping[ObjectKey, Mapping[str, Any]],
    is_now: Mapping[ObjectKey, Mapping[str, Any]],
    claims: dict[str, Mapping[str, Any]],
) -> Iterator[Mapping[str, Any]]:
    """The operation that lets a pod's claim refer to an object of the overlay; none if it has none of that name."""
    mine = value_at(is_now[key], path)
    reference: Mapping[str, Any] = next(
        (each for each in value_at(should[key], path[:-1]) if each.get("name") == mine.get("name")), {}
    )
    for field, kind in CLAIM_FIELDS.items():
        if field in reference and (kind, key[1], reference[field]) not in is_now:
            local = _local(overlay, key, reference, (), should, is_now, claims)
            yield {"op": "replace", "path": pointer_of((*path, field)), "value": local[field]}


def _container(path: Path) -> Path:
    """The path of the container that a path is in; empty if in none."""
    at = next((index for index, step in enumerate(path[:-1]) if step in _CONTAINERS), None)
    return path[: at + 2] if at is not None else ()


def _local(
    overlay: Kustomization,
    key: ObjectKey,
    claim: Mapping[str, Any],
    there: Sequence[Any],
    should: Mapping[ObjectKey, Mapping[str, Any]],
    is_now: Mapping[ObjectKey, Mapping[str, Any]],
    claims: dict[str, Mapping[str, Any]],
) -> Mapping[str, Any]:
    """A pod's claim as the overlay's patch has it: the one it has under that name, or an object of the overlay."""
    same = next((each for each in there if each.get("name") == claim.get("name")), None)
    if same is not None and same.keys() == claim.keys():
        return {
            field: _without_affixes(overlay, text) if field in CLAIM_FIELDS else text for field, text in same.items()
        }
    out = dict(claim)
    for field, kind in CLAIM_FIELDS.items():
        raw = should.get((kind, key[1], str(claim.get(field))))
        if raw is None:
            continue
        out[field] = name = _without_affixes(overlay, claim[field])
        if (kind, key[1], claim[field]) not in is_now:
            # The namespace of the kustomization is given to all that it builds.
            space = "" if overlay.document.object.get("namespace") else key[1]
            claims[name] = {**raw, "metadata": {"name": name, **({"namespace": space} if space else {})}}
    return out


def _without_affixes(overlay: Kustomization, name: str) -> str:
    own = overlay.document.object
    return name.removeprefix(str(own.get("namePrefix") or "")).removesuffix(str(own.get("nameSuffix") or ""))
