"""Writes the table of the command line for completion, and the scripts under ``completions/``.

``python -m tools.docs.completions`` writes them; with ``--check`` it says what differs and exits with 1.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_dra.cli.completion import kinds, scripts

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path("kubectl_dra/cli/completion/table.json")
FOLDER = Path("completions")
_SUMMARY = 90
_EFFECTS = {
    "None": "only says something",
    "NoSchedule": "no new pods",
    "NoExecute": "no new pods, running ones are evicted",
}


def files() -> dict[Path, str]:
    """Every generated file by its path in the repository, as it should be."""
    out = {TABLE: table()}
    for shell, name in scripts.FILES.items():
        out[FOLDER / name] = scripts.script(shell)
    return out


def table() -> str:
    """The text of ``table.json``: one line for each command, argument, flag and value."""
    import typer.main

    from kubectl_dra.cli.main import everything

    root: Any = typer.main.get_command(everything())
    commands = (("", root), *_commands(root))
    parts: dict[str, dict[str, Any]] = {
        "commands": {name: _summary(command) for name, command in commands[1:]},
        "arguments": {
            name: [_argument(parameter, name) for parameter in command.params if _is(parameter, "argument")]
            for name, command in commands
        },
        "flags": {name: dict(_flags(command)) for name, command in commands},
        "values": _values(),
    }
    return _lines(parts) + "\n"


def _lines(value: Any, indent: str = "") -> str:
    """JSON with a line for each entry of its objects, and of lists of lists."""
    deeper = indent + " "
    if isinstance(value, dict):
        inside = [f"{deeper}{_text(key)}: {_lines(entry, deeper)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(inside) + f"\n{indent}}}"
    if isinstance(value, list) and len(value) > 1 and all(isinstance(entry, tuple | list) for entry in value):
        return "[\n" + ",\n".join(deeper + _text(entry) for entry in value) + f"\n{indent}]"
    return _text(value)


def _commands(root: Any) -> Iterator[tuple[str, Any]]:
    for name, command in root.commands.items():
        if not command.hidden:
            yield name, command


def _argument(parameter: Any, command: str) -> tuple[kinds.Kind, bool]:
    return kinds.of_argument(parameter, command), parameter.nargs == -1


def _flags(command: Any) -> Iterator[tuple[str, tuple[kinds.Kind, bool, str, str]]]:
    for option in command.params:
        if not _is(option, "option") or getattr(option, "hidden", False):
            continue
        names = [*option.opts, *option.secondary_opts]
        short = next((name for name in names if not name.startswith("--")), "")
        repeatable = bool(getattr(option, "multiple", False)) or bool(getattr(option, "count", False))
        for name in (name for name in names if name.startswith("--")):
            yield name, (kinds.of_option(option), repeatable, short, _first(option.help))
    yield "--help", ("", False, "-h", "Show the help and exit")


def _values() -> dict[str, list[tuple[str, str]]]:
    from kubectl_dra.api.releases import MODELLED, known_gates
    from kubectl_dra.explain.causes.registry import all_kinds
    from kubectl_dra.lint.registry import RULES
    from kubectl_dra.taint.typed import EFFECTS

    return {
        "release": [(str(release), "") for release in reversed([*MODELLED])],
        "gate": [(gate, "") for gate in sorted(known_gates())],
        "effect": [(effect, _EFFECTS[effect]) for effect in EFFECTS],
        "cause": [(kind.code, _first(kind.title)) for kind in all_kinds()],
        "rule": [(rule.code, _first(rule.title())) for rule in RULES],
    }


def _is(parameter: Any, kind: str) -> bool:
    return bool(parameter.param_type_name == kind)


def _summary(command: Any) -> str:
    return str(command.short_help or _first(command.help))


def _first(text: str | None) -> str:
    """The first sentence, without its full stop, cut at a word where it is long."""
    paragraph = " ".join((text or "").replace("\b", "").split("\n\n")[0].split())
    sentence = re.split(r"[.;] ", paragraph)[0].rstrip(".")
    if len(sentence) <= _SUMMARY:
        return sentence
    return sentence[: _SUMMARY - 1].rpartition(" ")[0] + "…"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Writes the files, or checks them."""
    parser = argparse.ArgumentParser(prog="python -m tools.docs.completions")
    parser.add_argument("--check", action="store_true", help="only say what differs")
    check = parser.parse_args().check
    differs = False
    for path, text in files().items():
        target = ROOT / path
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        if old == text:
            continue
        differs = True
        if check:
            before, after = old.splitlines(True), text.splitlines(True)
            sys.stdout.writelines(difflib.unified_diff(before, after, str(path), "wanted"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            if path.name == scripts.FILES["kubectl"]:
                target.chmod(0o755)
            sys.stdout.write(f"wrote {path}\n")
    sys.exit(1 if check and differs else 0)


if __name__ == "__main__":
    main()
