"""What differs between Kubernetes releases is known in tables: ``api/`` and ``cel.libraries``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubectl_dra.api import behaviour
from kubectl_dra.api.behaviour import Aspect, Behaviour
from kubectl_dra.api.releases import EVERY, Release, Releases
from kubectl_dra.cel import libraries
from tests.conformance.manifests import answered
from tests.test_layers import FILES, PACKAGE, nodes
from tools.recorder.recorded import lines

DATA = PACKAGE.parent / "tests/conformance/data"
TABLES = frozenset((*(PACKAGE / "api").rglob("*.py"), PACKAGE / "cel/libraries.py"))
LITERAL = re.compile(r"v?1\.[23]\d(\.\d+)?")
NUMBERS = frozenset(("minor", ".minor", ".since", ".until"))
"""Names and attributes that are a release's number, or one with which it is compared."""
ORDERING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _last(node: ast.expr) -> str:
    return f".{node.attr}" if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_compared(node: ast.Compare) -> bool:
    names = {_last(each) for each in (node.left, *node.comparators)}
    ordered = any(isinstance(operator, ORDERING) for operator in node.ops)
    equal = any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops)
    constant = any(isinstance(each, ast.Constant) for each in (node.left, *node.comparators))
    return (ordered and bool(names & (NUMBERS | {"release", ".release"}))) or (
        equal and constant and bool(names & NUMBERS)
    )


def _of_numbers(node: ast.expr) -> bool:
    return any(_last(part) in NUMBERS for part in ast.walk(node) if isinstance(part, ast.expr))


def comparisons(path: Path) -> Iterator[str]:
    """Where a file compares releases, or names one, by itself."""
    prose = {id(node.value) for node in nodes(path) if isinstance(node, ast.Expr)}
    for node in nodes(path):
        found = ""
        if isinstance(node, ast.Compare) and _is_compared(node):
            found = ast.unparse(node)
        elif isinstance(node, ast.Call):
            name = _last(node.func)
            known = name == "Release" and any(isinstance(each, ast.Constant) for each in node.args)
            chosen = name in ("min", "max") and any(map(_of_numbers, node.args))
            found = ast.unparse(node) if name == ".at_least" or known or chosen else ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            found = node.value if LITERAL.fullmatch(node.value) else ""
        if found:
            yield f"{path.name}:{getattr(node, 'lineno', 0)}: {found}"


def test_releases_are_compared_in_tables_only() -> None:
    assert [place for path in FILES if path not in TABLES for place in comparisons(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "release.at_least(35)",
        "settings.release.minor >= 36",
        "minor != 36",
        "release < OLDEST",
        "Release(1, 34)",
        "min(release.minor, 37)",
        "def f(version='1.36'): pass",
        "release.minor == 36",
        "field.since > 31",
    ],
)
def test_the_test_sees_a_comparison(code: str, tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text(code)
    assert len([*comparisons(source)]) == 1


PATCHES = {
    "cli/lint/upgrade.py": "what the user names",
    "cli/release.py": "what the user names",
    "cluster/snapshot.py": "the server's own word",
    "explain/causes/known_defects.py": "a kubelet's, of a defect of kubelets",
    "manifests/charts.py": "what the user names, for helm",
    "taint/device_taint_rules.py": "in the sentence, where it is the server's",
}
"""Who reads the patch release of a release, and whose it is."""


def test_a_patch_release_is_nobody_elses() -> None:
    """A snapshot's release may be a kubelet's: for the control plane there is ``Snapshot.server_patch``."""
    readers = {path for path in FILES if "release.patch" in path.read_text(encoding="utf-8")}
    assert {path.relative_to(PACKAGE).as_posix() for path in readers} == PATCHES.keys()


def rows() -> dict[str, object]:
    """All rows of both tables, by name."""
    found = {**vars(behaviour), **vars(libraries)}
    return {name: row for name, row in found.items() if isinstance(row, Releases | libraries.LibraryVersion)}


def _is_message(row: object) -> bool:
    return isinstance(row, Behaviour) and row.about is Aspect.MESSAGE


def test_every_row_is_asked() -> None:
    words = "\n".join(path.read_text(encoding="utf-8") for path in FILES if path.name != "behaviour.py")
    asked = {*re.findall(r"\b[A-Za-z_0-9]+\b", words.replace((PACKAGE / "cel/libraries.py").read_text(), ""))}
    assert {name for name in rows() if name not in asked and name.lower() not in asked} == set()


def test_a_set_of_releases() -> None:
    some = Releases(34, 36)
    assert [str(release) for release in some] == ["1.34", "1.35", "1.36"]
    assert [minor for minor in range(30, 40) if Release(1, minor, 9) in some] == [34, 35, 36]
    assert Release(2, 0) in Releases(34) and Release(2, 0) not in some and Release(0, 35) not in Releases(34)
    assert (str(some), str(EVERY)) == ("1.34 to 1.36", "1.31 and later")
    assert (some.closest(Release(1, 30)), some.closest(Release(1, 40, 2))) == (Release(1, 34), Release(1, 36))
    assert some.closest(Release(1, 35, 7)) == Release(1, 35)
    assert [*some.after(Release(1, 35, 2))] == [Release(1, 36)]


@pytest.mark.parametrize("name", [name for name, row in vars(behaviour).items() if _is_message(row)])
def test_what_messages_say_decides_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that words it as other releases do accepts and rejects the same."""
    row, real = getattr(behaviour, name), Releases.__contains__
    cases = [*lines(DATA / "manifests-1.36.jsonl.gz")]
    expected = [answered(case).code for case in cases]
    monkeypatch.setattr(Releases, "__contains__", lambda self, release: real(self, release) != (self is row))
    assert [answered(case).code for case in cases] == expected
