"""Counts of devices that patches asked for, as patches of the claims that the pods have now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Change, EditRefused, Set, changed
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import Edit, edited, edits_of, reread
from kubectl_dra.manifests.kustomization import Kustomization, closure, with_components
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.migrate.inline_patches import InlinePatch, inline_patches
from kubectl_dra.migrate.kustomize.layout import is_for
from kubectl_dra.migrate.kustomize.repair import (
    CLAIM_FIELDS,
    BuildDifference,
    Repaired,
    as_wanted,
    claims_in,
    is_of,
    listed_in,
    objects_in,
    patch_files,
)
from kubectl_dra.migrate.new_objects import added_behind, documents_of

COUNTS: Final = "kubectl-dra-counts.yaml"
HEADING: Final = "# The devices that claims ask for here, written by kubectl dra migrate from patches of pods.\n"

Texts = Mapping[str, Source]
"""The current texts of changed files, by absolute path."""


class _Written(NamedTuple):
    """The text of a file of counts, and the claims in it that are new, by the number of their document."""

    text: str
    new: Mapping[int, Mapping[str, Any]]


def claim_patches(one: Kustomization, found: Sequence[BuildDifference], texts: Texts) -> Iterator[Repaired]:
    """Patches of claims whose spec must differ in an overlay, in the files of its patches of workloads."""
    bases = [raw for source in texts.values() for raw in claims_in(source)]
    patches = {path for part in with_components(one) for path in part.patches}
    for path in sorted(patches & set(texts)):
        source = texts[path]
        mine = list(objects_in(source))
        new: dict[str, tuple[int, Mapping[str, Any]]] = {}
        for difference in found:
            at = next((index for index, each in enumerate(mine) if is_of(each.object, difference.object)), None)
            raw = as_wanted(difference, bases)
            if at is not None and raw is not None:
                new.setdefault(repr(raw["metadata"]), (at, raw))
        if not new:
            continue
        document = mine[-1].document
        try:
            edit = added_behind(document, [raw for _, raw in new.values()])
        except EditRefused:
            continue
        text = edited(source.text, [edit])
        places = tuple((mine[at].path, mine[at].document.index, raw) for at, raw in new.values())
        yield Repaired(path, text, "counts", places)


def counted_inline(
    one: Kustomization, found: Sequence[BuildDifference], texts: Texts, group: Sequence[Kustomization]
) -> Iterator[Repaired]:
    """Patches of claims whose spec must differ, as files beside a kustomization that has patches in its own file, or
    files of patches with a target.

    ``group`` are all kustomizations that are built from the changed files.

    Raises:
        EditRefused: a file cannot be changed for certain, or overlays with one component need different patches.
    """
    bases = [raw for source in texts.values() for raw in claims_in(source)]
    waiting = [(difference, raw) for difference in found if (raw := as_wanted(difference, bases)) is not None]
    for part in with_components(one):
        gone = list(_changed(part, texts))
        mine: dict[str, Mapping[str, Any]] = {}
        for difference, raw in waiting:
            if any(is_for(patch, difference.object, one) for patch in gone):
                mine.setdefault(repr(raw["metadata"]), raw)
        # What an overlay patches itself is not for its components to say.
        waiting = [(difference, raw) for difference, raw in waiting if repr(raw["metadata"]) not in mine]
        if mine:
            yield from _counted(part, list(mine.values()), texts, _users(part, group))


def _changed(part: Kustomization, texts: Texts) -> Iterator[InlinePatch]:
    """The changed patches of a kustomization beside which no patch of a claim can stand: those in its own file, and
    files with a target, of which kustomize takes one patch only.
    """
    if part.path in texts:
        left = {patch.text for patch in inline_patches(parse(texts[part.path])[0].object)}
        yield from (patch for patch in inline_patches(part.document.object) if patch.text not in left)
    for patch, path in patch_files(part):
        if patch.target and path in texts:
            yield patch._replace(text=texts[path].text)


def _counted(
    part: Kustomization, wanted: Sequence[Mapping[str, Any]], texts: Texts, users: Sequence[Kustomization]
) -> Iterator[Repaired]:
    together: list[Mapping[str, Any]] = []
    source = texts.get(part.path, part.document.source)
    entries: list[Mapping[str, Any]] = []
    for raw in wanted:
        if all(_has(user, raw, texts) for user in users):
            together.append(raw)
            continue
        # Without a target, a patch of a claim that an overlay does not build would fail there.
        name = raw["metadata"]["name"]
        path = f"{part.directory}/{File(COUNTS).stem}-{name}.yaml"
        yield from _in_file(path, [raw], part, texts)
        entries.append({"path": File(path).name, "target": {"kind": raw["kind"], "name": name}})
    if together:
        yield from _in_file(f"{part.directory}/{COUNTS}", together, part, texts)
        entries.append({"path": COUNTS})
    listed = dict(texts)
    for entry in entries:
        there = parse(source)[0].object.get("patches")
        if not isinstance(there, list) or entry not in there:
            source = Source(source.name, listed_in(part, "patches", entry, listed), source.encoding, source.bom)
            listed[part.path] = source
    if part.path not in texts or source.text != texts[part.path].text:
        yield Repaired(part.path, source.text, "counts")


def _in_file(path: str, wanted: Sequence[Mapping[str, Any]], part: Kustomization, texts: Texts) -> Iterator[Repaired]:
    """The file of counts with the claims, if it does not say that yet.

    Raises:
        EditRefused: it is there for something else, or says something else for another overlay.
    """
    source = texts.get(path) or _read(path, part)
    if source is None:
        made = _Written(HEADING + documents_of(wanted, Style()), dict(enumerate(wanted)))
    else:
        made = _added(source, wanted, fixed=path in texts)
    if source is None or made.text != source.text:
        yield Repaired(path, made.text, "counts", tuple(((), number, raw) for number, raw in made.new.items()))


def _added(source: Source, wanted: Sequence[Mapping[str, Any]], *, fixed: bool) -> _Written:
    """A file of counts with more claims in it, or others; ``fixed``: what it says is for other overlays."""
    documents = parse(source)
    expected = [document.object for document in documents]
    edits: list[Edit] = []
    new: dict[int, Mapping[str, Any]] = {}
    for raw in wanted:
        number = next((number for number, each in enumerate(documents) if _same(each, raw)), None)
        if number is None:
            new[len(expected)] = raw
            expected.append(dict(raw))
            continue
        if documents[number].object == raw:
            continue
        if fixed:
            name = raw["metadata"]["name"]
            raise EditRefused(
                f"{source.name} would have to say different things of {raw['kind']} {name} for those that use it"
            )
        change: Change = Set(("spec",), raw["spec"])
        edits += edits_of(documents[number], [change])
        expected[number] = changed(documents[number].object, [change])
        new[number] = raw
    if len(expected) > len(documents):
        edits.append(added_behind(documents[-1], expected[len(documents) :]))
    text = edited(source.text, edits)
    reread(source, text, expected)
    return _Written(text, new)


def _same(document: Document, raw: Mapping[str, Any]) -> bool:
    return all(document.object.get(field) == raw[field] for field in ("kind", "metadata"))


def _read(path: str, part: Kustomization) -> Source | None:
    """A file of counts of an earlier run; None if there is none.

    Raises:
        EditRefused: another file has the name.
    """
    if not File(path).exists():
        return None
    try:
        source = decode(File(path).read_bytes(), path)
    except (OSError, InputError):
        source = Source(path, "")
    kinds = {each.kind for each in objects_in(source)}
    if path not in part.patches or not kinds or not kinds <= set(CLAIM_FIELDS.values()):
        raise EditRefused(f"{File(path).name}, which it would get, is there already and is no patch of claims")
    return source


def _users(part: Kustomization, group: Sequence[Kustomization]) -> list[Kustomization]:
    """The kustomizations that are built with this one; for an overlay it is enough to know that it is built itself."""
    if not part.is_component:
        return [part]
    return [one for one in group if not one.is_component and part.directory in _places(closure(one))]


def _places(parts: Iterable[Kustomization]) -> Collection[str]:
    return {part.directory for part in parts}


def _has(user: Kustomization, claim: Mapping[str, Any], texts: Texts) -> bool:
    """Whether a kustomization reads the claim."""
    files = {path for part in closure(user) for path in part.files}
    return any(
        raw["kind"] == claim["kind"] and raw["metadata"]["name"] == claim["metadata"]["name"]
        for path in files & texts.keys()
        for raw in claims_in(texts[path])
    )
