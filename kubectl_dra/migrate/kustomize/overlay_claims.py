"""Files that an overlay gets where its patches ask for devices: claims of its own, or counts of its base's claims."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, EditRefused, Set, changed, items_at, value_at
from kubectl_dra.manifests.documents import Document, parse
from kubectl_dra.manifests.edits import Edit, edited, edits_of, reread, with_changes
from kubectl_dra.manifests.kustomization import Kustomization, closure, with_components
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, object_key, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.style import Style
from kubectl_dra.manifests.workloads import CLAIM_REFERENCES, containers, pod_specs
from kubectl_dra.migrate.inline_patches import InlinePatch, inline_patches
from kubectl_dra.migrate.kustomize.build_differences import (
    BuildDifference,
    Repaired,
    Texts,
    as_wanted,
    claims_in,
    document_of,
    documents_in,
    is_of,
    listed_in,
    objects_in,
    patch_files,
    read,
    with_patches,
)
from kubectl_dra.migrate.kustomize.layout import is_for
from kubectl_dra.migrate.new_objects import added_behind, documents_of, named_in_space

CLAIMS: Final = "kubectl-dra-claims.yaml"
HEADING: Final = "# The claims for devices that patches here ask for, written by kubectl dra migrate.\n"
Objects = Sequence[Mapping[str, Any]]


def lacks_claims(difference: BuildDifference) -> bool:
    """Whether a pod lacks claims: a patch asked for devices, and what it patches did not."""
    content = difference.found
    fewer = content is None or (isinstance(content, list) and len(content) < len(difference.wanted or ()))
    return fewer and difference.path[-1:] == ("resourceClaims",)


def overlay_claims(
    overlay: Kustomization,
    differences: Sequence[BuildDifference],
    before: Objects,
    wanted: Objects,
    built: Objects,
    texts: Texts,
) -> Iterator[Repaired]:
    """The patches with references to claims, and the claim templates as a file beside the patches: of the overlay, or
    of its component.

    Raises:
        EditRefused: a file cannot be changed for certain.
    """
    missing = [difference for difference in differences if lacks_claims(difference)]
    old = {object_key(raw): raw for raw in before}
    new = {object_key(raw): raw for raw in wanted}
    there = {object_key(raw) for raw in built}
    for part in with_components(overlay) if missing else ():
        if f"{part.directory}/{CLAIMS}" not in texts:
            yield from _claims_of_patches(part, missing, _Claiming(overlay, old, new, there, {}), texts)


def _claims_of_patches(
    part: Kustomization, missing: Sequence[BuildDifference], claiming: _Claiming, texts: Texts
) -> Iterator[Repaired]:
    """The claims of the patches of a kustomization, which is the overlay itself or a component of it."""
    overlay, old, new, _, templates = claiming

    def referring(patch: InlinePatch, source: Source) -> str:
        """The text of a patch with references to claims."""
        documents = documents_in(source)
        changes: dict[int, list[Change]] = {}
        for document in documents:
            for raw in objects((document,)):
                for lost in missing:
                    fits = is_for(patch, lost.object, overlay) if patch.target else is_of(raw.object, lost.object)
                    if fits and lost.object in old and lost.object in new:
                        changes.setdefault(document.index, []).extend(claiming.changes(raw, lost))
        return with_changes(documents, changes) if changes else source.text

    for patch, path in patch_files(part):
        if path in texts and (text := referring(patch, texts[path])) != texts[path].text:
            yield Repaired(path, text, "claims" if templates else "pods")
    document = document_of(part, texts)
    own = document.source
    # Only those that asked for devices have changed.
    same = {patch.text for patch in inline_patches(part.document.object)}
    changes = [
        Set(patch.path, text)
        for patch in inline_patches(document.object)
        if patch.text not in same and (text := referring(patch, Source(own.name, patch.text))) != patch.text
    ]
    text = with_changes((document,), {document.index: changes})
    if templates:
        yield with_claims(part, list(templates.values()), texts)
        text = claims_listed(part, {**texts, part.path: own.with_text(text)})
    if text != own.text:
        yield Repaired(part.path, text, "claims" if templates else "pods")


class _Claiming(NamedTuple):
    """What an overlay builds ``old``, before the migration, and should build ``new``, by key; what is ``there`` now.

    ``templates`` gets the claim templates that the overlay needs of its own, by name.
    """

    overlay: Kustomization
    old: Mapping[ObjectKey, Mapping[str, Any]]
    new: Mapping[ObjectKey, Mapping[str, Any]]
    there: Collection[ObjectKey]
    templates: dict[str, Mapping[str, Any]]

    def changes(self, patch: ManifestObject, lost: BuildDifference) -> Iterator[Change]:
        """The changes that give the pods and containers of a patch their claims and tolerations."""
        names = self._names(patch, lost)
        at = lost.path[:-1]
        both = self.old[lost.object], self.new[lost.object]
        was, will = (value_at(raw, at) or {} for raw in both)
        mine = next((spec for spec in pod_specs(patch.object) if spec.path == at), None)
        first, last = (next(spec for spec in pod_specs(raw) if spec.path == at) for raw in both)
        if mine is None:
            raise EditRefused("the patch has no pod there")
        root = patch.path
        # A list of a patch takes the place of the base's.
        claims = [
            {key: names.get(str(value), value) if key in CLAIM_REFERENCES else value for key, value in claim.items()}
            for claim in will.get("resourceClaims", ())
        ]
        yield Set((*root, *at, "resourceClaims"), claims)
        if will.get("tolerations") != was.get("tolerations"):
            yield Set((*root, *at, "tolerations"), will["tolerations"])
        before = {container.name: container.content for container in containers(first)}
        patched = {container.name: container.path for container in containers(mine)}
        for container in containers(last):
            listed: FieldPath = ("resources", "claims")
            used = value_at(container.content, listed)
            if used and used != value_at(before.get(container.name, {}), listed):
                if container.name not in patched:
                    raise EditRefused("the patch does not have the container")
                place = (*patched[container.name], *listed)
                if value_at(patch.object, place[:-1]) is None:
                    yield Set((*root, *place[:-1]), {"claims": used})
                else:
                    yield Set((*root, *place), used)

    def _names(self, patch: ManifestObject, lost: BuildDifference) -> dict[str, str]:
        """What new claims of the build are called in the overlay; adds to ``templates`` those that are not there."""
        _, space, built = lost.object
        was, will = (value_at(raws[lost.object], lost.path) or () for raws in (self.old, self.new))
        metadata = patch.object.get("metadata") or {}
        # The base's namespace is no longer given to what stands in an overlay; its own is given to all it builds.
        namespace = metadata.get("namespace") or ("" if self.overlay.document.object.get("namespace") else space)
        own = str(metadata.get("name") or "patched")
        names: dict[str, str] = {}
        for claim in (claim for claim in will if claim not in was):
            for field, kind in CLAIM_REFERENCES.items():
                name = str(claim.get(field, ""))
                raw = self.new.get((kind, space, name))
                if raw is None:
                    continue
                # A long name of the build was cut, so that the workload's is not in it.
                names[name] = mine = name.replace(built, own) if built in name else f"{own}-{claim.get('name')}"
                # Where the base has it, a patch that replaces a list only took the pod's reference away.
                if (kind, space, name) not in self.there:
                    self.templates[mine] = {**raw, "metadata": named_in_space(mine, namespace)}
        return names


def with_claims(part: Kustomization, claims: Objects, texts: Texts) -> Repaired:
    """The file of the claims of a kustomization, with more of them.

    Raises:
        EditRefused: another file has its name, or a claim in it has one of the names.
    """
    path = f"{part.directory}/{CLAIMS}"
    source = _there(path, texts, part.files, "file of its claims")
    if source is None:
        return Repaired(path, HEADING + documents_of(claims, Style()), "claims")
    if {object_key(manifest.object) for manifest in objects_in(source)} & {object_key(raw) for raw in claims}:
        raise EditRefused(f"{CLAIMS} has a claim of the name already that it would get")
    documents = parse(source)
    text = edited(source.text, [added_behind(documents[-1], claims)])
    reread(source, text, [*(document.object for document in documents), *claims])
    return Repaired(path, text, "claims")


def claims_listed(part: Kustomization, texts: Texts) -> str:
    """The text of a kustomization that reads the file of its claims."""
    document = document_of(part, texts)
    listed = CLAIMS in items_at(document.object, "resources")
    return document.source.text if listed else listed_in(part, "resources", CLAIMS, texts)


def _there(path: str, texts: Texts, files: Collection[str], what: str) -> Source | None:
    """A file of claims of this run, or of an earlier one among the ``files`` of a kustomization; None if there is none.

    Raises:
        EditRefused: another file has its name.
    """
    if path not in texts and not Path(path).exists():
        return None
    source = texts.get(path) or read(path)
    kinds = {manifest.kind for manifest in objects_in(source)} if source is not None else set()
    if not kinds or not kinds <= set(CLAIM_REFERENCES.values()) or not (path in texts or path in files):
        raise EditRefused(f"{Path(path).name}, which it would get, is there already and is no {what}")
    return source


# Counts of devices that patches asked for, as patches of the claims that the pods have now.


COUNTS: Final = "kubectl-dra-counts.yaml"
COUNTS_HEADING: Final = "# The devices that claims ask for here, written by kubectl dra migrate from patches of pods.\n"


class _Written(NamedTuple):
    """The text of a file of counts, and the claims in it that are new, by the number of their document."""

    text: str
    new: Mapping[int, Mapping[str, Any]]


def claim_patches(overlay: Kustomization, differences: Sequence[BuildDifference], texts: Texts) -> Iterator[Repaired]:
    """Patches of claims whose spec must differ in an overlay, in the files of its patches of workloads."""
    bases = [raw for source in texts.values() for raw in claims_in(source)]
    patches = {path for part in with_components(overlay) for path in part.patches}
    for path in sorted(patches & set(texts)):
        source = texts[path]
        mine = list(objects_in(source))
        new: dict[str, tuple[int, Mapping[str, Any]]] = {}
        for difference in differences:
            at = next((index for index, manifest in enumerate(mine) if is_of(manifest.object, difference.object)), None)
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
    overlay: Kustomization, differences: Sequence[BuildDifference], texts: Texts, group: Sequence[Kustomization]
) -> Iterator[Repaired]:
    """Patches of claims whose spec must differ, as files beside a kustomization that has patches in its own file, or
    files of patches with a target.

    ``group`` are all kustomizations that are built from the changed files.

    Raises:
        EditRefused: a file cannot be changed for certain, or overlays with one component need different patches.
    """
    bases = [raw for source in texts.values() for raw in claims_in(source)]
    waiting = [(difference, raw) for difference in differences if (raw := as_wanted(difference, bases)) is not None]
    for part in with_components(overlay):
        gone = list(_changed(part, texts))
        mine: dict[str, Mapping[str, Any]] = {}
        for difference, raw in waiting:
            if any(is_for(patch, difference.object, overlay) for patch in gone):
                mine.setdefault(repr(raw["metadata"]), raw)
        # What an overlay patches itself is not for its components to say.
        waiting = [(difference, raw) for difference, raw in waiting if repr(raw["metadata"]) not in mine]
        if mine:
            yield from _counted(part, list(mine.values()), texts, _users(part, group))


def _changed(part: Kustomization, texts: Texts) -> Iterator[InlinePatch]:
    """The changed patches of a kustomization that no patch of a claim can be added to: those in its own file, and
    files with a target, which kustomize allows one patch each.
    """
    if part.path in texts:
        texts_after = {patch.text for patch in inline_patches(document_of(part, texts).object)}
        yield from (patch for patch in inline_patches(part.document.object) if patch.text not in texts_after)
    for patch, path in patch_files(part):
        if patch.target and path in texts:
            yield patch._replace(text=texts[path].text)


def _counted(
    part: Kustomization, wanted: Sequence[Mapping[str, Any]], texts: Texts, users: Sequence[Kustomization]
) -> Iterator[Repaired]:
    together: list[Mapping[str, Any]] = []
    entries: list[Mapping[str, Any]] = []
    for raw in wanted:
        if all(_has(user, raw, texts) for user in users):
            together.append(raw)
            continue
        # Without a target, a patch of a claim that an overlay does not build would fail there.
        name = raw["metadata"]["name"]
        path = f"{part.directory}/{Path(COUNTS).stem}-{name}.yaml"
        yield from _in_file(path, [raw], part, texts)
        entries.append({"path": Path(path).name, "target": {"kind": raw["kind"], "name": name}})
    if together:
        yield from _in_file(f"{part.directory}/{COUNTS}", together, part, texts)
        entries.append({"path": COUNTS})
    source = with_patches(part, entries, texts)
    if part.path not in texts or source.text != texts[part.path].text:
        yield Repaired(part.path, source.text, "counts")


def _in_file(path: str, wanted: Sequence[Mapping[str, Any]], part: Kustomization, texts: Texts) -> Iterator[Repaired]:
    """The file of counts with the claims, if it does not say that yet.

    Raises:
        EditRefused: it is there for something else, or says something else for another overlay.
    """
    source = texts.get(path) or _there(path, texts, part.patches, "patch of claims")
    if source is None:
        written = _Written(COUNTS_HEADING + documents_of(wanted, Style()), dict(enumerate(wanted)))
    else:
        written = _more_counts(source, wanted, fixed=path in texts)
    if source is None or written.text != source.text:
        yield Repaired(path, written.text, "counts", tuple(((), number, raw) for number, raw in written.new.items()))


def _more_counts(source: Source, wanted: Sequence[Mapping[str, Any]], *, fixed: bool) -> _Written:
    """A file of counts with more claims in it, or others; ``fixed``: what it says is for other overlays."""
    documents = parse(source)
    expected = [document.object for document in documents]
    edits: list[Edit] = []
    new: dict[int, Mapping[str, Any]] = {}
    for raw in wanted:
        number = next((number for number, document in enumerate(documents) if _same(document, raw)), None)
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


def _users(part: Kustomization, group: Sequence[Kustomization]) -> list[Kustomization]:
    """The kustomizations that are built with this one; for an overlay it is enough to know that it is built itself."""
    if not part.is_component:
        return [part]
    return [
        overlay
        for overlay in group
        if not overlay.is_component and any(part.directory == other.directory for other in closure(overlay))
    ]


def counted_here(overlay: Kustomization, differences: Sequence[BuildDifference], texts: Texts) -> Iterator[Repaired]:
    """Patches of claims whose spec must differ, beside a kustomization of which no other patch has changed.

    Raises:
        EditRefused: a file cannot be changed for certain.
    """
    bases = [raw for source in texts.values() for raw in claims_in(source)]
    wanted = {repr(raw["metadata"]): raw for unequal in differences if (raw := as_wanted(unequal, bases)) is not None}
    if wanted:
        yield from _counted(overlay, list(wanted.values()), texts, [overlay])


def _has(user: Kustomization, claim: Mapping[str, Any], texts: Texts) -> bool:
    """Whether a kustomization reads the claim."""
    files = {path for part in closure(user) for path in part.files}
    return any(
        raw["kind"] == claim["kind"] and raw["metadata"]["name"] == claim["metadata"]["name"]
        for path in files & texts.keys()
        for raw in claims_in(texts[path])
    )
