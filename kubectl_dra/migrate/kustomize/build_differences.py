"""What differs between builds of an overlay before and after its base is migrated, and what the overlay then needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from kubectl_dra.api.releases import GROUP
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.errors import FileError, InputError
from kubectl_dra.manifests.changes import Append, Change, EditRefused, Set, fields_at, items_at, value_at
from kubectl_dra.manifests.documents import Document, NotAnObject, parse
from kubectl_dra.manifests.edits import with_changes
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, object_key, objects
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.manifests.workloads import CLAIM_REFERENCES, key_of, pod_specs
from kubectl_dra.migrate.inline_patches import FIELDS, GONE, InlinePatch, dropped, inline_patches
from kubectl_dra.migrate.new_objects import documents_of
from kubectl_dra.migrate.reading import Ignored, asked_in, pointed
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

# Compares two builds, with the content of claims in place of their names.


class BuildDifference(NamedTuple):
    """Where two builds differ: the object, the path in it, and the value on each side (None: nothing).

    ``claim``: for a path to a pod's claim, the object that it refers to in the new build; the values are then
    the specs of the objects referred to.
    """

    object: ObjectKey
    path: FieldPath
    wanted: Any
    found: Any
    claim: ObjectKey | None = None


def objects_of(text: str) -> list[Mapping[str, Any]]:
    """The objects of a build. Raises FileError."""
    try:
        return [manifest.object for manifest in objects(parse(Source("<build>", text)))]
    except NotAnObject:
        return []


def differences(
    before: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]], built: Sequence[Mapping[str, Any]]
) -> Iterator[BuildDifference]:
    """Differences of ``built`` from ``wanted``. Both come from ``before``, and new objects are added beside its
    objects.
    """
    old = {object_key(raw) for raw in before}
    wanted_by_key, found_by_key = _listed(wanted), _listed(built)
    for key in dict.fromkeys((*wanted_by_key, *found_by_key)):
        left, right = wanted_by_key.get(key), found_by_key.get(key)
        if (
            key not in old
            and key[0] in CLAIM_REFERENCES.values()
            and str((left or right or {}).get("apiVersion")).startswith(GROUP)
        ):
            # A new claim counts where a pod refers to it.
            continue
        if left is None or right is None:
            yield BuildDifference(key, (), left, right)
            continue
        yield from _of_claims(key, left, right, wanted_by_key, found_by_key)
        yield from _of_values(key, (), _without_references(left), _without_references(right))


def _listed(objects: Sequence[Mapping[str, Any]]) -> dict[ObjectKey, Mapping[str, Any]]:
    return {object_key(raw): raw for raw in objects}


def _of_claims(
    key: ObjectKey,
    left: Mapping[str, Any],
    right: Mapping[str, Any],
    wanted_by_key: Mapping[ObjectKey, Mapping[str, Any]],
    found_by_key: Mapping[ObjectKey, Mapping[str, Any]],
) -> Iterator[BuildDifference]:
    """Claims of the pods whose meaning differs, given that the pods have the same claims."""
    twins = {spec.path: spec for spec in pod_specs(right)}
    for spec in pod_specs(left):
        twin = twins.get(spec.path)
        theirs = _claims(twin.content) if twin is not None else {}
        for name, (_, reference) in _claims(spec.content).items():
            if name not in theirs:
                continue
            index, mine = theirs[name]
            for field, kind in CLAIM_REFERENCES.items():
                if field in reference and field in mine:
                    wanted, meant = (kind, key[1], str(reference[field])), (kind, key[1], str(mine[field]))
                    should, does = wanted_by_key.get(wanted, {}).get("spec"), found_by_key.get(meant, {}).get("spec")
                    if should != does or (does is None and wanted != meant):
                        yield BuildDifference(key, (*spec.path, "resourceClaims", index), should, does, meant)


def _claims(spec: Mapping[str, Any]) -> dict[str, tuple[int, Mapping[str, Any]]]:
    return {
        str(pod_claim.get("name")): (index, pod_claim)
        for index, pod_claim in enumerate(items_at(spec, "resourceClaims"))
        if isinstance(pod_claim, Mapping)
    }


def _without_references(raw: Mapping[str, Any]) -> Any:
    """A copy in which a pod's claim keeps only the name of the field that holds its reference."""
    paths = {(*spec.path, "resourceClaims") for spec in pod_specs(raw)}
    return _copy(raw, (), paths)


def _copy(value: Any, path: FieldPath, paths: set[FieldPath]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: "" if key in CLAIM_REFERENCES and path[:-1] in paths else _copy(below, (*path, key), paths)
            for key, below in value.items()
        }
    if isinstance(value, list):
        return [_copy(below, (*path, index), paths) for index, below in enumerate(value)]
    return value


def _of_values(key: ObjectKey, path: FieldPath, left: Any, right: Any) -> Iterator[BuildDifference]:
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for field in dict.fromkeys((*left, *right)):
            yield from _of_values(key, (*path, field), left.get(field), right.get(field))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (expected, actual) in enumerate(zip(left, right, strict=True)):
            yield from _of_values(key, (*path, index), expected, actual)
    elif left != right:
        yield BuildDifference(key, path, left, right)


CONFIGURATION: Final = "kubectl-dra-names.yaml"


Texts = Mapping[str, Source]
"""The changed files as they are now, by absolute path."""
Repair = Literal["counts", "claims", "names", "namespaces", "labels", "unused", "fits", "pods"]


class Repaired(NamedTuple):
    """A file (absolute path) with its new text. ``objects`` are those added, by the place of their patch.

    ``does`` says what it is for: counts in patches of claims, claims of the overlay's own, names or namespaces of
    claims that kustomize changes, labels that patches no longer say, templates that nothing uses, JSON patches that
    fit what has lost its requests, or patches that lay the rest over pods.
    """

    path: str
    text: str
    does: Repair
    objects: tuple[tuple[FieldPath, int, Mapping[str, Any]], ...] = ()


def as_wanted(difference: BuildDifference, bases: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The claim of a difference by its name in the base, with the spec that it has to have; None if uncertain."""
    base = _base(difference.claim, bases)
    if base is None or difference.found is None or difference.wanted is None:
        return None
    return {**base, "spec": difference.wanted}


def claims_in(source: Source) -> Iterator[Mapping[str, Any]]:
    """The identities of claims and templates in a file."""
    for manifest in objects_in(source):
        metadata = manifest.object.get("metadata")
        if manifest.kind in CLAIM_REFERENCES.values() and isinstance(metadata, Mapping):
            kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
            yield {"apiVersion": manifest.api_version, "kind": manifest.kind, "metadata": kept}


def documents_in(patch: Source) -> tuple[Document, ...]:
    """The documents of a patch; none of a JSON patch, which has neither labels nor claims of its own."""
    try:
        return parse(patch)
    except FileError:
        return ()


def objects_in(source: Source) -> Iterator[ManifestObject]:
    """The objects of a file; none if it cannot be read."""
    try:
        yield from objects(parse(source))
    except InputError:
        return


def read(path: str) -> Source | None:
    """A file; None if it cannot be read."""
    try:
        return decode(Path(path).read_bytes(), path)
    except (OSError, InputError):
        return None


def document_of(part: Kustomization, texts: Texts) -> Document:
    """The file of a kustomization as it is now."""
    return parse(texts[part.path])[0] if part.path in texts else part.document


def rewritten(
    part: Kustomization, texts: Texts, does: Repair, text_of: Callable[[InlinePatch, Source], str]
) -> Iterator[Repaired]:
    """The patches of a kustomization, in files and in its own, with other texts; those of its own without any go.

    Raises:
        EditRefused: the kustomization cannot be changed for certain.
    """
    for patch, path in patch_files(part):
        source = texts.get(path) or read(path)
        text = text_of(patch, source) if source is not None else ""
        if source is not None and text and text != source.text:
            yield Repaired(path, text, does)
    document = document_of(part, texts)
    patches = [(patch, text_of(patch, Source("<patch>", patch.text))) for patch in inline_patches(document.object)]
    others = [(patch, text) for patch, text in patches if text != patch.text]
    changes: list[Change] = [Set(patch.path, text) for patch, text in others if text]
    changes += dropped(document.object, [patch.entry for patch, text in others if not text])
    text = with_changes((document,), {document.index: changes})
    if text != document.source.text:
        yield Repaired(part.path, text, does)


def is_of(patch: Mapping[str, Any], key: ObjectKey) -> bool:
    """Whether a patch is for an object, whose name the kustomization may have extended."""
    metadata = patch.get("metadata")
    name = str(metadata.get("name")) if isinstance(metadata, Mapping) else ""
    return patch.get("kind") == key[0] and bool(name) and name in key[2]


def _base(claim: ObjectKey | None, bases: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The name in the base of a claim in a build; None if uncertain."""
    if claim is None:
        return None
    named = {str(raw["metadata"].get("name")): raw for raw in bases if raw["kind"] == claim[0]}
    fitting = sorted((name for name in named if name in claim[2]), key=len)
    return named[fitting[-1]] if fitting else None


def followed_names(
    overlay: Kustomization,
    holder: Kustomization,
    differences: Sequence[BuildDifference],
    built: Iterable[Mapping[str, Any]],
    texts: Texts,
) -> Iterator[Repaired]:
    """A configuration that makes kustomize update claim names in pods, and the kustomization that uses it.

    ``holder`` is that kustomization: the one that renames, or its base where that is none of a file.

    Raises:
        EditRefused: the kustomization cannot be changed safely.
    """
    kinds: dict[str, dict[str, set[tuple[str, str, str]]]] = {}
    groups = {(str(raw.get("kind"))): key_of(raw)[0] for raw in built}
    for difference in differences:
        if difference.claim is None or difference.found is not None or difference.wanted is None:
            continue
        field = next(field for field, kind in CLAIM_REFERENCES.items() if kind == difference.claim[0])
        path = "/".join(str(part) for part in difference.path if isinstance(part, str))
        kind = difference.object[0]
        kinds.setdefault(difference.claim[0], {}).setdefault(field, set()).add((f"{path}/{field}", kind, groups[kind]))
    path = f"{holder.directory}/{CONFIGURATION}"
    if not kinds or path in texts:
        return
    entries = [
        {
            "kind": claim,
            "group": GROUP,
            "fieldSpecs": [
                {"path": path, **({"group": group} if group else {}), "kind": kind}
                for paths in fields.values()
                for path, kind, group in sorted(paths)
            ],
        }
        for claim, fields in sorted(kinds.items())
    ]
    if Path(path).exists():
        yield Repaired(path, _more_names(path, entries, holder), "names")
        return
    heading = "# Where workloads refer to claims, so that kustomize writes the names there that it gives the claims.\n"
    yield Repaired(path, heading + documents_of([{"nameReference": entries}], Style()), "names")
    yield Repaired(holder.path, listed_in(holder, "configurations", CONFIGURATION, texts), "names")


def _more_names(path: str, entries: Sequence[Mapping[str, Any]], overlay: Kustomization) -> str:
    """The text of the configuration of an earlier run with more places.

    Raises:
        EditRefused: another file has its name.
    """
    source = read(path)
    document = parse(source)[0] if source is not None and source.text.strip() else None
    there = document.object.get("nameReference") if document is not None else None
    if (
        document is None
        or not isinstance(there, list)
        or CONFIGURATION not in overlay.document.object.get("configurations", ())
    ):
        raise EditRefused(f"{CONFIGURATION}, which it would get, is there already and is no configuration of it")
    changes: list[Change] = []
    for rule in entries:
        index = next((index for index, other in enumerate(there) if other.get("kind") == rule["kind"]), None)
        if index is None:
            changes.append(Append(("nameReference",), rule))
        else:
            changes += [Append(("nameReference", index, "fieldSpecs"), place) for place in rule["fieldSpecs"]]
    return with_changes((document,), {document.index: changes})


def without_unused(
    overlay: Kustomization,
    wanted: Iterable[Mapping[str, Any]],
    built: Sequence[Mapping[str, Any]],
    texts: Texts,
) -> Iterator[Repaired]:
    """The kustomization, with patches that also delete the claim templates of the workloads that it deletes.

    Raises:
        EditRefused: it cannot be changed for certain.
    """
    used = {
        str(reference.get(field))
        for raw in built
        for spec in pod_specs(raw)
        for _, reference in _claims(spec.content).values()
        for field in CLAIM_REFERENCES
    }
    should = {object_key(raw) for raw in wanted}
    deletions: list[Mapping[str, Any]] = []
    for claim in built:
        kind, _, name = key = object_key(claim)
        if kind not in CLAIM_REFERENCES.values() or key in should or name in used:
            continue
        name = without_affixes(overlay, name)
        patch = {"apiVersion": claim["apiVersion"], "kind": kind, "metadata": {"name": name}, "$patch": "delete"}
        deletions.append({"target": {"kind": kind, "name": name}, "patch": documents_of([patch], Style())})
    source = with_patches(overlay, deletions, texts)
    if source.text != document_of(overlay, texts).source.text:
        yield Repaired(overlay.path, source.text, "unused")


def without_affixes(overlay: Kustomization, name: str) -> str:
    """The name of an object of a build before the kustomization extended it."""
    own = overlay.document.object
    return name.removeprefix(str(own.get("namePrefix") or "")).removesuffix(str(own.get("nameSuffix") or ""))


def with_patches(overlay: Kustomization, patches: Iterable[Mapping[str, Any]], texts: Texts) -> Source:
    """A kustomization with those of the patches that it does not have yet. Raises EditRefused as ``listed_in``."""
    now = dict(texts)
    for patch in patches:
        document = document_of(overlay, now)
        if patch not in items_at(document.object, "patches"):
            now[overlay.path] = document.source.with_text(listed_in(overlay, "patches", patch, now))
    return document_of(overlay, now).source


def listed_in(overlay: Kustomization, field: str, item: Any, texts: Texts) -> str:
    """The text of a kustomization with one more entry in a list.

    Raises:
        EditRefused: it cannot be changed for certain.
    """
    document = document_of(overlay, texts)
    change = Append((field,), item) if items_at(document.object, field) else Set((field,), [item])
    return with_changes((document,), {document.index: [change]})


# Patches of a kustomization that ask device plugins for something, and where they stand.


class DevicePatch(NamedTuple):
    """A patch that asks, or asked, for ``resource`` in a line (from 1) of a file (an absolute path).

    ``stays``: it still does. ``ignored``: because of a comment. ``patch`` is as the kustomization has it; of a patch
    in a file its text is the file's.
    """

    file: str
    line: int
    resource: str
    stays: bool
    ignored: bool
    patch: InlinePatch


def device_patches(overlay: Kustomization, texts: Texts, catalogue: VendorCatalogue) -> Iterator[DevicePatch]:
    """The patches of a kustomization and of all that it reads."""
    for part in closure(overlay):
        present = {patch.text for patch in inline_patches(document_of(part, texts).object)}
        for patch in inline_patches(part.document.object):
            named = _named(patch.text, catalogue)
            if named is not None:
                line = part.document.position(patch.path).line
                node = part.document.nodes(patch.path)
                # The text of a block begins below its indicator.
                inside = named[0] if node is not None and node.value.style in ("|", ">") else 0
                ignored = Ignored(part.document.source, (part.document,)).covers(GONE, part.document, patch.path)
                ignored = ignored or _says_ignore(patch.text, named[0])
                yield DevicePatch(part.path, line + inside, named[1], patch.text in present, ignored, patch)
        files = {path: patch for patch, path in patch_files(part)}
        for path in sorted(part.files - {part.path}):
            source = read(path)
            # Transformers may have JSON patches, too.
            if source is None or not (path in files or pointed(source.text, catalogue)):
                continue
            named = _named(source.text, catalogue)
            if named is not None:
                patch = files.get(path, InlinePatch((), "", {}))._replace(text=source.text)
                stays = path not in texts or _named(texts[path].text, catalogue) is not None
                yield DevicePatch(path, named[0], named[1], stays, _says_ignore(source.text, named[0]), patch)


def patch_files(part: Kustomization) -> Iterator[tuple[InlinePatch, str]]:
    """The patches of a kustomization that are files: each as its entry has it, without text, and its absolute path."""
    for field in FIELDS:
        for index, patch in enumerate(items_at(part.document.object, field)):
            word = patch if isinstance(patch, str) else value_at(patch, ("path",))
            path = part.path_of(word) if isinstance(word, str) else ""
            if path in part.files:
                yield InlinePatch((field, index), "", fields_at(patch, "target")), path


def _named(text: str, catalogue: VendorCatalogue) -> tuple[int, str] | None:
    """The first line of a text that asks for a resource, and its name."""
    source = Source("<patch>", text)
    return next(((source.place(at)[0], name) for at, name in asked_in(text, catalogue)), None)


def _says_ignore(text: str, line: int) -> bool:
    """Whether a comment of a text, on a line or above it, says to leave what it asks for."""
    source = Source("<patch>", text)
    try:
        documents = parse(source)
    except InputError:
        documents = ()
    return Ignored(source, documents).covers_lines(GONE, range(1, line + 1))
