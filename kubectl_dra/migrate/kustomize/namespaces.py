"""Replacements that give workloads their namespace, and have to give it to the claims of these, too."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubectl_dra.manifests.changes import Append, changed
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.edits import edited, edits_of, reread
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.objects import object_key
from kubectl_dra.manifests.source import Source
from kubectl_dra.migrate.kustomize.difference import BuildDifference
from kubectl_dra.migrate.kustomize.repair import Repaired, claims_in

NAMESPACE: Final = "metadata.namespace"


def followed_namespaces(
    one: Kustomization,
    found: Sequence[BuildDifference],
    built: Iterable[Mapping[str, Any]],
    texts: Mapping[str, Source],
) -> Iterator[Repaired]:
    """Kustomizations whose replacements of a workload's namespace select its claims as well.

    ``texts`` are the changed files as they are now, by absolute path.

    Raises:
        EditRefused: a kustomization cannot be changed safely.
    """
    keys = [object_key(raw) for raw in built]
    wanted: dict[tuple[str, str], None] = {}
    for difference in found:
        if difference.claim is None or difference.found is not None:
            continue
        kind, space, name = difference.claim
        if any(key[0] == kind and key[1] != space and name in key[2] for key in keys):
            wanted[(difference.object[0], kind)] = None
    for part in closure(one) if wanted else ():
        raw = parse(texts[part.path])[0] if part.path in texts else part.document
        if not _has_claims(part, texts):
            continue
        changes = [
            Append(("replacements", index, "targets"), {"select": {"kind": claim}, "fieldPaths": [NAMESPACE]})
            for workload, claim in wanted
            for index in _replaced(raw.object, workload, claim)
        ]
        if changes:
            text = edited(raw.source.text, edits_of(raw, changes))
            reread(raw.source, text, [changed(raw.object, changes)])
            yield Repaired(part.path, text, "namespaces")


def _has_claims(part: Kustomization, texts: Mapping[str, Source]) -> bool:
    """Whether new claims are among what the kustomization reads, or beside it in a file of its own."""
    below = closure(part)
    return any(
        path in each.files or os.path.dirname(path) == each.directory  # noqa: PTH120
        for path, source in texts.items()
        for each in below
        if any(True for _ in claims_in(source))
    )


def _replaced(raw: Mapping[str, Any], workload: str, claim: str) -> Iterator[int]:
    """The replacements that write the namespace of a kind of workload, and not that of its claims."""
    replacements = raw.get("replacements")
    for index, entry in enumerate(replacements if isinstance(replacements, list) else ()):
        targets = entry.get("targets") if isinstance(entry, Mapping) else None
        kinds = {
            str(select.get("kind"))
            for target in (targets if isinstance(targets, list) else ())
            if isinstance(target, Mapping) and NAMESPACE in (target.get("fieldPaths") or ())
            if isinstance(select := target.get("select"), Mapping)
        }
        if workload in kinds and claim not in kinds:
            yield index
