"""Puts what overlays of a migrated base need into the texts of its group, by the first way that can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import EditRefused, items_at, value_at
from kubectl_dra.manifests.kustomization import Kustomization, kustomization_in
from kubectl_dra.manifests.objects import ObjectKey, object_key
from kubectl_dra.manifests.workloads import CLAIM_REFERENCES, pod_specs
from kubectl_dra.migrate.inline_patches import patch_text, pointer_of
from kubectl_dra.migrate.kustomize import outcome
from kubectl_dra.migrate.kustomize.build_differences import (
    BuildDifference,
    Repaired,
    Texts,
    document_of,
    followed_names,
    with_patches,
    without_affixes,
)
from kubectl_dra.migrate.kustomize.existing_patches import followed_namespaces, labels_taken_out
from kubectl_dra.migrate.kustomize.outcome import Group
from kubectl_dra.migrate.kustomize.overlay_claims import (
    Objects,
    claim_patches,
    claims_listed,
    counted_here,
    counted_inline,
    overlay_claims,
    with_claims,
)
from kubectl_dra.migrate.new_objects import named_in_space

_CONTAINERS = ("containers", "initContainers")


def pod_patches(
    overlay: Kustomization,
    differences: Sequence[BuildDifference],
    wanted: Objects,
    built: Objects,
    texts: Texts,
) -> Iterator[Repaired]:
    """The kustomization with patches of pods, and the claims that only its pods have.

    Raises:
        EditRefused: a file cannot be changed for certain.
    """
    should = {object_key(raw): raw for raw in wanted}
    is_now = {object_key(raw): raw for raw in built}
    by_object: dict[ObjectKey, list[BuildDifference]] = {}
    for difference in differences:
        # A claim that is there is patched itself, unless others need it to say something else.
        other = difference.claim is None or (difference.found is not None and difference.wanted is not None)
        if other and difference.path and any(True for _ in pod_specs(should.get(difference.object, {}))):
            by_object.setdefault(difference.object, []).append(difference)
    claims: dict[str, Mapping[str, Any]] = {}
    entries: list[Mapping[str, Any]] = []
    for key, mine in by_object.items():
        operations = list(_PodPatch(overlay, key, should, is_now, claims).operations(mine))
        if operations:
            target = {"kind": key[0], "name": without_affixes(overlay, key[2])}
            entries.append({"target": target, "patch": patch_text(operations)})
    there = items_at(document_of(overlay, texts).object, "patches")
    if not entries or any(patch in there for patch in entries):
        # It was tried, and did not help.
        return
    own = with_patches(overlay, entries, texts)
    if claims:
        yield with_claims(overlay, list(claims.values()), texts)
        own = own.with_text(claims_listed(overlay, {**texts, overlay.path: own}))
    yield Repaired(overlay.path, own.text, "claims" if claims else "pods")


class _PodPatch(NamedTuple):
    """A patch of an overlay for the object ``key``: what its build ``should`` have and has now, by key.

    ``claims`` gets the objects of the overlay's own to which the pods refer, by name.
    """

    overlay: Kustomization
    key: ObjectKey
    should: Mapping[ObjectKey, Mapping[str, Any]]
    is_now: Mapping[ObjectKey, Mapping[str, Any]]
    claims: dict[str, Mapping[str, Any]]

    def operations(self, differences: Sequence[BuildDifference]) -> Iterator[Mapping[str, Any]]:
        """The operations, after a test that the object's containers are those that are meant."""
        wanted, now = self.should[self.key], self.is_now[self.key]
        for path in dict.fromkeys(path for difference in differences if (path := _container(difference.path))):
            yield {"op": "test", "path": pointer_of((*path, "name")), "value": value_at(now, (*path, "name"))}
        for difference in differences:
            if difference.claim is not None:
                yield from self._of_its_own(difference.path)
                continue
            pointer = pointer_of(difference.path)
            new, old = value_at(wanted, difference.path), value_at(now, difference.path)
            if difference.path[-1] == "resourceClaims" and new:
                new = [self._local(item, old or ()) for item in new]
            if new is None:
                yield {"op": "remove", "path": pointer}
            elif old and isinstance(old, list) and isinstance(new, list) and new[: len(old)] == old:
                for item in new[len(old) :]:
                    yield {"op": "add", "path": f"{pointer}/-", "value": item}
            else:
                yield {"op": "add" if old is None else "replace", "path": pointer, "value": new}

    def _of_its_own(self, path: FieldPath) -> Iterator[Mapping[str, Any]]:
        """The operation that lets a pod's claim refer to an object of the overlay; none if it has none of that name."""
        mine = value_at(self.is_now[self.key], path)
        reference: Mapping[str, Any] = next(
            (other for other in value_at(self.should[self.key], path[:-1]) if other.get("name") == mine.get("name")), {}
        )
        for field, kind in CLAIM_REFERENCES.items():
            if field in reference and (kind, self.key[1], reference[field]) not in self.is_now:
                yield {"op": "replace", "path": pointer_of((*path, field)), "value": self._local(reference, ())[field]}

    def _local(self, claim: Mapping[str, Any], there: Sequence[Any]) -> Mapping[str, Any]:
        """A pod's claim as the patch has it: the one it has under that name, or an object of the overlay."""
        same = next((other for other in there if other.get("name") == claim.get("name")), None)
        if same is not None and same.keys() == claim.keys():
            return {
                field: without_affixes(self.overlay, text) if field in CLAIM_REFERENCES else text
                for field, text in same.items()
            }
        out = dict(claim)
        for field, kind in CLAIM_REFERENCES.items():
            raw = self.should.get((kind, self.key[1], str(claim.get(field))))
            if raw is None:
                continue
            out[field] = name = without_affixes(self.overlay, claim[field])
            if (kind, self.key[1], claim[field]) not in self.is_now:
                # The namespace of the kustomization is given to all that it builds.
                space = "" if self.overlay.document.object.get("namespace") else self.key[1]
                self.claims[name] = {**raw, "metadata": named_in_space(name, space)}
        return out


def _container(path: FieldPath) -> FieldPath:
    """The path of the container that a path is in; empty if in none."""
    at = next((index for index, step in enumerate(path[:-1]) if step in _CONTAINERS), None)
    return path[: at + 2] if at is not None else ()


class OutOfRun(Exception):
    """A file outside the run would have to be changed; the argument is its path."""


def repaired(
    group: Group,
    overlay: Kustomization,
    differences: Sequence[BuildDifference],
    builds: tuple[Sequence[Mapping[str, Any]], ...],
    names: Mapping[str, str],
    *,
    clear: bool,
) -> list[Repaired]:
    """Put a repair for an overlay into the texts of the group, and report it.

    ``clear``: that pods should differ so is certain, whatever the patches of the overlay do.

    Raises:
        EditRefused: a file cannot be changed for certain.
        OutOfRun: a file that would have to be changed is not of the run.
    """
    before, wanted, after = builds
    if overlay.deployer:
        # Its base can say where names are; the rest is for people to change.
        base = next((part for root in overlay.roots if (part := kustomization_in(root)) is not None), None)
        followed = followed_names(overlay, base, differences, after, group.texts) if base and base.path in names else ()
        return recorded(group, overlay, list(followed), names)
    ways: tuple[Callable[[], Iterable[Repaired]], ...] = (
        lambda: (repair for repair in labels_taken_out(overlay, differences, group.texts) if repair.path in names),
        lambda: followed_names(overlay, overlay, differences, after, group.texts),
        lambda: followed_namespaces(overlay, differences, after, group.texts),
        lambda: overlay_claims(overlay, differences, before, wanted, after, group.texts),
        lambda: counted_inline(overlay, differences, group.texts, group.kustomizations),
        lambda: claim_patches(overlay, differences, group.texts),
    )
    if clear:
        ways += (
            lambda: counted_here(overlay, differences, group.texts),
            lambda: pod_patches(overlay, differences, wanted, after, group.texts),
        )
    return recorded(group, overlay, _first_of(ways, group, names), names)


def _first_of(
    ways: Sequence[Callable[[], Iterable[Repaired]]], group: Group, names: Mapping[str, str]
) -> list[Repaired]:
    """Repairs of the first way that makes any; later ways need to know less of the overlay.

    Raises:
        EditRefused, OutOfRun: none can; why the first of them failed.
    """
    failed: EditRefused | OutOfRun | None = None
    for way in ways:
        try:
            repairs = [
                repair
                for repair in way()
                if repair.path not in group.texts or repair.text != group.texts[repair.path].text
            ]
            for repair in repairs:
                if repair.path not in names and repair.path not in group.texts and Path(repair.path).exists():
                    raise OutOfRun(repair.path)
        except (EditRefused, OutOfRun) as failure:
            failed = failed or failure
            continue
        if repairs:
            return repairs
    if failed is not None:
        raise failed
    return []


def recorded(group: Group, overlay: Kustomization, repairs: list[Repaired], names: Mapping[str, str]) -> list[Repaired]:
    """The repairs, put into the texts of the group and reported."""
    for repair in repairs:
        source = group.texts.get(repair.path)
        if source is None:
            source = (
                overlay.document.source
                if repair.path == overlay.path
                else outcome.original(repair.path, outcome.shown(repair.path))
            )
        name = names.get(repair.path, source.name)
        group.texts[repair.path] = source.with_text(repair.text, name)
        said = group.said.setdefault(repair.path, [])
        # What another overlay needs of the same file is said once.
        said += [item for item in outcome.remarks(repair, name) if item not in said]
    return repairs
