"""Imports point downward, and never in a circle: what changes things asks explain what the scheduler would say of them.

``docs/architecture.md`` shows the layers; ``python -m tests.test_layers`` writes them there.
"""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Mapping, Sequence, Set
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "kubectl_dra"
LEVELS = {
    "cli": 12,
    "ui": 11,
    "metrics": 10,
    "lsp": 10,
    "report": 10,
    "fit": 9,
    "migrate": 9,
    "taint": 9,
    "usage": 9,
    "lint": 8,
    "explain": 8,
    "drivers": 7,
    "neighbours": 7,
    "scheduling": 6,
    "admission": 6,
    "cluster": 5,
    "manifests": 4,
    "allocation": 3,
    "data": 3,
    "cel": 2,
    "api": 1,
}
BASE = {
    "by_identity": 0,
    "command": 0,
    "safe_output": 0,
    "errors": 0,
    "exit_codes": 0,
    "grouped": 0,
    "layered_table": 0,
    "process": 0,
    "text": 0,
}
ENTRY = 13
PAGE = PACKAGE.parent / "docs" / "architecture.md"
DRAWN = re.compile(r"(<!-- layers -->\n)(?P<text>.*?)(<!-- /layers -->)", re.DOTALL)


def layer(module: str) -> tuple[str, int]:
    """The folder of a module and its level; top-level modules are the base or the entry point."""
    parts = module.split(".")
    if len(parts) == 1 or parts[1] == "__main__":
        return parts[-1], ENTRY if parts[-1] == "__main__" else 0
    return parts[1], LEVELS.get(parts[1], BASE.get(parts[1], -1))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file, which several tests look at."""
    # Looking for garbage among a million nodes takes longer than parsing.
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.freeze()
        gc.enable()


@cache
def nodes(path: Path) -> Sequence[ast.AST]:
    """All nodes of a file's syntax tree."""
    return tuple(ast.walk(parsed(path)))


def imports(path: Path) -> list[str]:
    """The kubectl_dra modules that a file imports, anywhere in it."""
    found: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("kubectl_dra"):
            assert node.module is not None
            base = PACKAGE.parent / node.module.replace(".", "/")
            found.extend(
                f"{node.module}.{alias.name}" if (base / f"{alias.name}.py").exists() else node.module
                for alias in node.names
            )
        elif isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names if alias.name.startswith("kubectl_dra"))
    return found


def name_of(path: Path) -> str:
    """The module in a file of the package."""
    return ".".join(("kubectl_dra", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


FILES = sorted(PACKAGE.rglob("*.py"))


RAW = frozenset(("print", "echo", "secho", "buffer", "__stdout__", "__stderr__"))
EXACT = frozenset(("safe_output.py", "report/color.py", "report/lint_formats.py", "cli/live.py"))
"""Modules that write what they made safe themselves."""


def raw_writing(path: Path) -> list[str]:
    """Where a module writes to the terminal past ``kubectl_dra.safe_output``."""
    name = str(path.relative_to(PACKAGE))
    found = []
    for node in nodes(path):
        called = node.func if isinstance(node, ast.Call) else node
        word = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        stream = called.value if isinstance(called, ast.Attribute) else None
        ours = isinstance(stream, ast.Attribute) and stream.attr in ("stdout", "stderr")
        if (
            (word in RAW and (isinstance(node, ast.Call) or ours or word.startswith("__")))
            or (word in ("write", "writelines") and ours)
            or (word == "exact" and isinstance(node, ast.Call) and isinstance(called, ast.Name) and name not in EXACT)
        ):
            found.append(f"{name}:{getattr(node, 'lineno', 0)}: {word}")
    return found


@cache
def imported_by() -> Mapping[str, Set[str]]:
    """Every module to the modules that it imports, wherever in its file."""
    return {name_of(path): {*imports(path)} - {name_of(path)} for path in FILES}


def test_a_module_is_short() -> None:
    """A module is one idea: a longer one is two, or hides what it is about."""
    sizes = {path.relative_to(PACKAGE).as_posix(): len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {name: size for name, size in sizes.items() if size > 450} == {}


def test_output_has_one_way_out() -> None:
    """Text reaches the terminal through ``safe_output``: ``Painter``, ``tell``, ``put``, ``lines``, ``document``."""
    assert [place for path in FILES if path.name != "safe_output.py" for place in raw_writing(path)] == []


def test_every_folder_is_in_a_layer() -> None:
    assert [module for module in imported_by() if layer(module)[1] < 0] == [], "name its folder in LEVELS"


def drawn() -> str:
    """The layers as the architecture page has them."""
    rows = (
        sorted(each for each in LEVELS if LEVELS[each] == level) for level in sorted({*LEVELS.values()}, reverse=True)
    )
    return "```text\n" + "\n".join("  ".join(row) for row in rows) + "\n```\n"


def test_the_page_shows_the_layers() -> None:
    found = DRAWN.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None and found["text"] == drawn(), "run: python -m tests.test_layers"


def test_the_page_tells_of_every_folder() -> None:
    told = re.findall(r"^\| `(\w+)/` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(told) == sorted(LEVELS)


@pytest.mark.parametrize("page", [PAGE, PACKAGE.parent / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|yaml))?)`", text)
    roots = (PACKAGE, PACKAGE.parent, PACKAGE / "admission", PACKAGE / "explain", PACKAGE / "lint")
    assert [name for name in named if "CODE" not in name and not any((root / name).exists() for root in roots)] == []
    alone = {
        path.name
        for root in (PACKAGE, PACKAGE.parent / "tools", PACKAGE.parent / "tests")
        for path in root.rglob("*.*")
    }
    alone |= {path.name for path in PACKAGE.parent.iterdir()}
    assert [name for name in re.findall(r"`(\w+\.(?:py|yaml))`", text) if name not in alone] == []


def test_imports_point_downward() -> None:
    upward = [
        f"{module} imports {other}"
        for module, imported in imported_by().items()
        for other in sorted(imported)
        if layer(module)[0] != layer(other)[0] and layer(other)[1] >= layer(module)[1]
    ]
    assert upward == []


def test_the_test_sees_an_upward_import(tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text("def f():\n    from kubectl_dra.explain import diagnosis\n")
    assert imports(source) == ["kubectl_dra.explain.diagnosis"]
    assert layer("kubectl_dra.explain.diagnosis")[1] > layer("kubectl_dra.allocation.search")[1]


def circles(imported: Mapping[str, Set[str]]) -> set[frozenset[str]]:
    """The groups of modules that all import each other, directly or through others."""
    reached = {module: _reached(module, imported) for module in imported}
    return {
        frozenset(other for other in there if module in reached.get(other, ()))
        for module, there in reached.items()
        if module in there
    }


def _reached(module: str, imported: Mapping[str, Set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [module]
    while ahead:
        new = imported.get(ahead.pop(), frozenset()) - found
        found |= new
        ahead.extend(new)
    return found


def test_no_modules_import_each_other() -> None:
    assert [sorted(circle) for circle in circles(imported_by())] == []


def test_the_test_sees_a_circle() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}) == {frozenset("abc")}


def _dotted(node: ast.expr) -> str:
    """The name that a plain expression such as ``sys.stdout`` is; empty for others."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def talks(path: Path) -> list[str]:
    """Where a file prints, asks a person or ends the process by itself."""
    own = {"sys.stdout", "sys.stderr", "sys.exit", "print", "input", "exit", "quit"}
    found = []
    for node in nodes(path):
        if not isinstance(node, ast.Call | ast.Attribute):
            continue
        name = _dotted(node.func if isinstance(node, ast.Call) else node)
        if name in own and (isinstance(node, ast.Call) or "." in name):
            found.append(f"line {node.lineno}: {name}")
    return found


def test_only_the_command_line_and_its_reports_print_and_exit() -> None:
    quiet = (path for path in FILES if 0 < LEVELS.get(path.relative_to(PACKAGE).parts[0], 0) < LEVELS["report"])
    found = {str(path.relative_to(PACKAGE)): places for path in quiet if (places := talks(path))}
    assert found == {}


def test_the_test_sees_who_talks(tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text("import sys\ndef f():\n    print(1)\n    sys.stderr.write('x')\n    sys.exit(1)\n")
    assert {place.partition(": ")[2] for place in talks(source)} == {"print", "sys.stderr", "sys.exit"}


def imported_packages(path: Path) -> set[str]:
    """The top-level packages that a file imports, anywhere in it."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
    return found


def test_the_program_needs_neither_tools_nor_tests_and_tools_no_tests() -> None:
    tools = sorted((PACKAGE.parent / "tools").rglob("*.py"))
    assert tools
    assert [str(path) for path in FILES if imported_packages(path) & {"tools", "tests"}] == []
    assert [str(path) for path in tools if "tests" in imported_packages(path)] == []


def test_no_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(path))
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_what_a_file_has_imported_it_does_not_import_again() -> None:
    """An import inside of a function delays a module. Of one that the file imports anyway, it only hides a name."""
    lazy = {name_of(path).removesuffix(".__init__") for path in FILES if "def __getattr__" in path.read_text("utf-8")}
    again: list[str] = []
    for path in FILES:
        tree = parsed(path)
        known = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)} - lazy
        for function in (node for node in nodes(path) if isinstance(node, ast.FunctionDef)):
            for node in ast.walk(function):
                if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith(PACKAGE.name):
                    continue
                if node.module in known and not _of_submodules(node):
                    again.append(f"{name_of(path)}: {node.module}")
    assert sorted(set(again)) == []


def _of_submodules(node: ast.ImportFrom) -> bool:
    folder = PACKAGE.parent / (node.module or "").replace(".", "/")
    return any((folder / f"{name.name}.py").exists() or (folder / name.name).is_dir() for name in node.names)


if __name__ == "__main__":
    PAGE.write_text(DRAWN.sub(lambda match: match[1] + drawn() + match[3], PAGE.read_text(encoding="utf-8")))
