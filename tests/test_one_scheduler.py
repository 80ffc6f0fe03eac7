"""What would happen is asked in one way: clusters are changed in ``cluster/``, attempts are made in ``scheduling/``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_layers import FILES, PACKAGE, nodes, parsed

PARTS = frozenset(("Chain", "ClusterState", "Cycle", "DynamicResources", "Outcome", "make_cycle"))
SNAPSHOTS = frozenset(("around", "free", "read", "snapshot", "world"))


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """The calls in a file, each with the last part of the name that is called."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            yield last_name(node.func), node


def last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def outside(folder: str) -> Iterator[tuple[str, Path]]:
    for path in FILES:
        name = path.relative_to(PACKAGE).as_posix()
        if not name.startswith(f"{folder}/"):
            yield name, path


def test_clusters_are_changed_in_one_place() -> None:
    found = {
        name
        for name, path in outside("cluster")
        for called, node in calls(path)
        if called == "replace" and node.keywords and node.args and last_name(node.args[0]).lstrip("_") in SNAPSHOTS
    }
    assert not found, "change a Cluster instead"


def aliases(tree: ast.Module) -> Iterator[str]:
    """The public functions of a module that only make an ``Outcome``: whoever calls one gets past the scheduler."""
    for entry in tree.body:
        if isinstance(entry, ast.FunctionDef) and not entry.name.startswith("_"):
            returned = (node.value for node in ast.walk(entry) if isinstance(node, ast.Return))
            if any(isinstance(value, ast.Call) and last_name(value.func) == "Outcome" for value in returned):
                yield entry.name


def test_no_function_hides_that_an_attempt_is_made() -> None:
    assert [name for path in FILES for name in aliases(parsed(path))] == []


def test_the_test_sees_an_alias() -> None:
    assert [*aliases(ast.parse("def schedule(pod, state, **how):\n    return Outcome(pod, state, **how)\n"))] == [
        "schedule"
    ]


def test_attempts_are_made_by_the_scheduler() -> None:
    found: dict[str, set[str]] = {}
    for name, path in outside("scheduling"):
        for called, _ in calls(path):
            if called in PARTS:
                found.setdefault(name, set()).add(called)
    assert not found, "ask a Scheduler instead"
