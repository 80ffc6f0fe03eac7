"""Whatever ``migrate`` writes belongs to a remark that is called a change, and is counted as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kubectl_dra.api.schema import FieldPath, path_text
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.objects import objects, title
from kubectl_dra.migrate.codes import PAGES
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigratedFile, Remark
from tests.migrate.runs import settings
from tests.migrate.test_said_and_written import texts

WIRING = {"resources", "resourceClaims", "pod", "nodeSelector", "affinity", "gpus", "hostDevices"}
"""What MIG101 itself changes: the request becomes a claim, and rules for nodes become selectors."""


def differences(before: Any, after: Any, path: FieldPath = ()) -> Iterator[FieldPath]:
    """The paths at which two values differ, as deep as both are mappings."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in {**before, **after}:
            if key not in before or key not in after:
                yield (*path, key)
            else:
                yield from differences(before[key], after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, (*path, index))
    elif before != after:
        yield path


def inside(one: str, other: str) -> bool:
    """Whether a path, as text, is another one or below it."""
    return one == other or (one.startswith(other) and one[len(other)] in ".[")


def told(path: FieldPath, changes: list[Remark]) -> bool:
    """Whether a change is about the path."""
    text, last = path_text(path), str(path[-1])
    for item in changes:
        if inside(text, item.field) or inside(item.field, text):
            return True
        if item.code == "MIG101" and (WIRING & set(path) or last in item.message):
            return True
        # Labels and annotations that become selectors are named in the change of the request.
        if item.code == "MIG101" and "annotation " in item.message and last in ("metadata", "annotations"):
            return True
        # One remark for all limits of a queue.
        if item.code == "MIG206" and last.startswith("deviceclass/"):
            return True
        # Mappings that are empty without the zero go with it.
        if item.code == "MIG102" and "resources" in path:
            return True
    return False


def by_title(text: str) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for document in read_documents(text, "f.yaml"):
        for manifest in objects((document,)):
            out.setdefault(title(manifest.object), []).append(manifest.object)
    return out


def check(result: MigratedFile) -> None:
    assert result.text is not None
    before, after = by_title(result.text.before), by_title(result.text.after)
    for name, were in before.items():
        if len(were) != 1 or len(after.get(name, ())) != 1:
            continue
        mine = [item for item in result.items if item.object == name]
        changes = [item for item in mine if item.sort == "change"]
        whole = any(PAGES[item.code].code.startswith("MIG3") for item in changes)
        for path in differences(were[0], after[name][0]):
            if path[0] not in ("items", "objects"):
                assert whole or told(path, changes), f"{name}: {path_text(path)} is written, and told as no change"
    added = after.keys() - before.keys()
    new = {item.new for item in result.items if item.sort == "object"}
    assert added <= new, f"added without a word: {added - new}"


@pytest.mark.parametrize("unsafe", [False, True], ids=["", "unsafe"])
@pytest.mark.parametrize("text", list(texts()))
def test_what_is_written_is_told_as_a_change(text: str, unsafe: bool) -> None:
    try:
        report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(settings(), unsafe))
    except InputError:
        return
    for result in report.changed:
        check(result)


def test_every_file_that_changes_has_a_change_to_count() -> None:
    toleration = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    image: a:1\n"
        "    resources:\n      limits:\n        nvidia.com/gpu: 1\n"
    )
    report = migrate([Input("f.yaml", True, toleration.encode())], MigrationJob(settings()))
    assert [item.code for item in report.items("change")] == ["MIG107", "MIG101"]
    assert not report.items("note")
