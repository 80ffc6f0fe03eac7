"""Which objects of a build a patch in a kustomization is for."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.objects import ObjectKey, objects
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.inline_patches import InlinePatch
from kubectl_dra.migrate.kustomize.repair import is_of, objects_in, read


def is_for(patch: InlinePatch, key: ObjectKey, one: Kustomization) -> bool:
    """Whether a patch may be for an object of a build of ``one``, in which it may have a longer name."""
    if not patch.target:
        try:
            return any(is_of(each.object, key) for each in objects(parse(Source("<patch>", patch.text))))
        except InputError:
            return False
    kind, name = patch.target.get("kind"), patch.target.get("name")
    return _matches(kind, key[0]) and (not name or any(_matches(name, each) for each in _names(key, one)))


def _matches(pattern: object, text: str) -> bool:
    """Whether kustomize takes a pattern of a target to mean a text: all of it, and anything where there is none.

    It is Go's syntax of regular expressions (api/types/selector.go of kustomize).
    """
    if not pattern:
        return True
    # Few kustomizations have a pattern that is more than a word.
    if pattern == text:
        return True
    from kubectl_dra.cel.library.regex import PatternError, compile_pattern

    try:
        return compile_pattern(f"^(?:{pattern})$").search(text) is not None
    except PatternError:
        return False


def _names(key: ObjectKey, one: Kustomization) -> Iterator[str]:
    """The names that an object may have where the patches of a kustomization are applied.

    Kustomize compares the name in the file, and the one that other kustomizations have made of it by then
    (Select in api/resmap/reswrangler.go); its own prefix and suffix come last.
    """
    built = key[2]
    own = one.document.object
    yield built
    yield built.removeprefix(str(own.get("namePrefix") or "")).removesuffix(str(own.get("nameSuffix") or ""))
    for part in closure(one):
        for path in sorted(part.files):
            source = read(path)
            for found in objects_in(source) if source is not None else ():
                if is_of(found.object, key):
                    yield str(found.object["metadata"]["name"])
