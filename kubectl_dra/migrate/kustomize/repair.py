"""What overlays of a migrated base need: files that say it, and references that follow the names of claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as File
from typing import Any, Final, Literal, NamedTuple

from kubectl_dra.api.releases import GROUP
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Append, Change, EditRefused, Path, Set, changed
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import edited, edits_of, reread, verified
from kubectl_dra.manifests.kustomization import Kustomization
from kubectl_dra.manifests.objects import ManifestObject, ObjectKey, objects
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style
from kubectl_dra.manifests.workloads import key_of
from kubectl_dra.migrate.kustomize.difference import FIELDS, BuildDifference
from kubectl_dra.migrate.render import documents_of

CONFIGURATION: Final = "kubectl-dra-names.yaml"


class Repaired(NamedTuple):
    """A file (absolute path) with its new text. ``objects`` are those added, by the place of their patch.

    ``does`` says what it is for: counts in patches of claims, claims of the overlay's own, names or namespaces of
    claims that kustomize changes, labels that patches no longer say.
    """

    path: str
    text: str
    does: Literal["counts", "claims", "names", "namespaces", "labels"]
    objects: tuple[tuple[Path, int, Mapping[str, Any]], ...] = ()


def as_wanted(difference: BuildDifference, bases: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The claim of a difference by its name in the base, with the spec that it has to have; None if uncertain."""
    base = _base(difference.claim, bases)
    if base is None or difference.found is None or difference.wanted is None:
        return None
    return {**base, "spec": difference.wanted}


def claims_in(source: Source) -> Iterator[Mapping[str, Any]]:
    """The identities of claims and templates in a file."""
    for found in objects_in(source):
        metadata = found.object.get("metadata")
        if found.kind in FIELDS.values() and isinstance(metadata, Mapping):
            kept = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
            yield {"apiVersion": found.api_version, "kind": found.kind, "metadata": kept}


def objects_in(source: Source) -> Iterator[ManifestObject]:
    """The objects of a file; none if it cannot be read."""
    try:
        yield from objects(parse(source))
    except InputError:
        return


def read(path: str) -> Source | None:
    """A file; None if it cannot be read."""
    try:
        return decode(File(path).read_bytes(), path)
    except (OSError, InputError):
        return None


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


# --- names ---------------------------------------------------------------------------------------


def followed_names(
    one: Kustomization,
    found: Sequence[BuildDifference],
    built: Iterable[Mapping[str, Any]],
    texts: Mapping[str, Source],
) -> Iterator[Repaired]:
    """A configuration that makes kustomize update claim names in pods, and the kustomization that uses it.

    ``texts`` are the changed files as they are now, by absolute path.

    Raises:
        EditRefused: the kustomization cannot be changed safely.
    """
    kinds: dict[str, dict[str, set[tuple[str, str, str]]]] = {}
    groups = {(str(raw.get("kind"))): key_of(raw)[0] for raw in built}
    for difference in found:
        if difference.claim is None or difference.found is not None or difference.wanted is None:
            continue
        field = next(field for field, kind in FIELDS.items() if kind == difference.claim[0])
        path = "/".join(str(part) for part in difference.path if isinstance(part, str))
        kind = difference.object[0]
        kinds.setdefault(difference.claim[0], {}).setdefault(field, set()).add((f"{path}/{field}", kind, groups[kind]))
    path = f"{one.directory}/{CONFIGURATION}"
    if not kinds or not one.renames or path in texts:
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
    if File(path).exists():
        yield Repaired(path, _more_names(path, entries, one), "names")
        return
    text = (
        "# Where workloads refer to claims, so that kustomize writes the names there that it gives the claims.\n"
        + documents_of([{"nameReference": entries}], Style())
    )
    yield Repaired(path, text, "names")
    yield Repaired(one.path, listed_in(one, "configurations", CONFIGURATION, texts), "names")


def _more_names(path: str, entries: Sequence[Mapping[str, Any]], one: Kustomization) -> str:
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
        or CONFIGURATION not in one.document.object.get("configurations", ())
    ):
        raise EditRefused(f"{CONFIGURATION}, which it would get, is there already and is no configuration of it")
    changes: list[Change] = []
    for entry in entries:
        index = next((index for index, each in enumerate(there) if each.get("kind") == entry["kind"]), None)
        if index is None:
            changes.append(Append(("nameReference",), entry))
        else:
            changes += [Append(("nameReference", index, "fieldSpecs"), place) for place in entry["fieldSpecs"]]
    return verified((document,), edits_of(document, changes), {document.index: changed(document.object, changes)})


def listed_in(one: Kustomization, field: str, entry: Any, texts: Mapping[str, Source]) -> str:
    """The text of a kustomization with one more entry in a list.

    Raises:
        EditRefused: it cannot be changed for certain.
    """
    document = parse(texts[one.path])[0] if one.path in texts else one.document
    raw = document.object
    there = isinstance(raw.get(field), list) and bool(raw[field])
    change = Append((field,), entry) if there else Set((field,), [entry])
    text = edited(document.source.text, edits_of(document, [change]))
    reread(document.source, text, [changed(raw, [change])])
    return text
