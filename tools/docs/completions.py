"""Writes the table of the command line for completion, and the scripts under ``completions/``.

``python -m tools.docs.completions`` writes them; with ``--check`` it says what differs and exits with 1.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kubectl_dra.cli.completion import words as kinds
from kubectl_dra.cli.completion.run import FILES, script

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path("kubectl_dra/cli/completion/table.py")
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
    for shell, name in FILES.items():
        out[FOLDER / name] = script(shell)
    return out


def table() -> str:
    """The source of ``table.py``."""
    import typer.main

    from kubectl_dra.cli.main import everything

    root: Any = typer.main.get_command(everything())
    lines = [
        '"""The command line as data, so that completion needs neither typer nor the commands.',
        "",
        'Written by ``make completions`` from the commands; do not edit.\n"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "COMMANDS: Final[dict[str, str]] = {",
        *(f"    {_quoted(name)}: {_quoted(_summary(command))}," for name, command in _commands(root)),
        "}",
        '"""Command to its summary."""',
        "",
        "ARGUMENTS: Final[dict[str, tuple[tuple[str | tuple[str, ...], bool], ...]]] = {",
    ]
    for name, command in (("", root), *_commands(root)):
        found = [_argument(parameter, name) for parameter in command.params if _is(parameter, "argument")]
        lines.append(f"    {_quoted(name)}: {_tuple(found)},")
    lines += [
        "}",
        '"""Command to its arguments: kind (or the words themselves), and whether it may be repeated."""',
        "",
        "_Flags = dict[str, tuple[str | tuple[str, ...], bool, str, str]]",
        "_CONNECTION: Final[_Flags] = {",
    ]
    flags = {name: list(_flags(command)) for name, command in (("", root), *_commands(root))}
    connection = _shared_end([each for each in flags.values() if any("--kubeconfig" in line for line in each)])
    lines += [f"    {line}," for line in connection]
    lines += ["}", "FLAGS: Final[dict[str, _Flags]] = {"]
    for name, each in flags.items():
        shared = bool(connection) and each[-len(connection) :] == connection
        lines.append(f"    {_quoted(name)}: {{")
        lines += [f"        {line}," for line in (each[: -len(connection)] if shared else each)]
        lines += ["        **_CONNECTION,"] if shared else []
        lines.append("    },")
    lines += [
        "}",
        '"""Command to its flags: kind (or the words; empty takes no value), repeatable, short form, summary."""',
        "",
        "VALUES: Final[dict[str, tuple[tuple[str, str], ...]]] = {",
    ]
    for kind, values in _values().items():
        lines.append(f"    {_quoted(kind)}: (")
        lines += [f"        ({_quoted(value)}, {_quoted(summary)})," for value, summary in values]
        lines.append("    ),")
    lines += ["}", '"""Kind to its values with their meaning, where they do not depend on a cluster."""', ""]
    return "\n".join(lines)


def _commands(root: Any) -> Iterator[tuple[str, Any]]:
    for name, command in root.commands.items():
        if not command.hidden:
            yield name, command


def _argument(parameter: Any, command: str) -> str:
    return _tuple([_kind(kinds.of_argument(parameter, command)), str(parameter.nargs == -1)])


def _flags(command: Any) -> Iterator[str]:
    for option in command.params:
        if not _is(option, "option") or getattr(option, "hidden", False):
            continue
        names = [*option.opts, *option.secondary_opts]
        short = next((name for name in names if not name.startswith("--")), "")
        repeatable = bool(getattr(option, "multiple", False)) or bool(getattr(option, "count", False))
        for name in (name for name in names if name.startswith("--")):
            entry = [_kind(kinds.of_option(option)), str(repeatable), _quoted(short), _quoted(_first(option.help))]
            yield f"{_quoted(name)}: {_tuple(entry)}"
    yield f"{_quoted('--help')}: {_tuple([_quoted(''), 'False', _quoted('-h'), _quoted('Show the help and exit')])}"


def _shared_end(commands: Sequence[list[str]]) -> list[str]:
    """The flags that all commands on a cluster have behind their own."""
    count = 0
    while commands and len({tuple(each[-count - 1 :]) for each in commands}) == 1 and count < len(commands[0]):
        count += 1
    return commands[0][-count:] if count else []


def _values() -> dict[str, list[tuple[str, str]]]:
    from kubectl_dra.api.releases import NEWEST_MODELLED, OLDEST_MODELLED, known_gates
    from kubectl_dra.explain.causes.registry import all_kinds
    from kubectl_dra.lint.rules import RULES
    from kubectl_dra.taint.typed import EFFECTS

    minors = range(NEWEST_MODELLED.minor, OLDEST_MODELLED.minor - 1, -1)
    return {
        "release": [(f"1.{minor}", "") for minor in minors],
        "gate": [(gate, "") for gate in sorted(known_gates())],
        "effect": [(effect, _EFFECTS[effect]) for effect in EFFECTS],
        "cause": [(kind.code, _first(kind.title)) for kind in all_kinds()],
        "rule": [(rule.code, _first(rule.title())) for rule in RULES],
    }


def _is(parameter: Any, kind: str) -> bool:
    return bool(parameter.param_type_name == kind)


def _kind(kind: kinds.Kind) -> str:
    return _quoted(kind) if isinstance(kind, str) else _tuple([_quoted(word) for word in kind])


def _summary(command: Any) -> str:
    return str(command.short_help or _first(command.help))


def _first(text: str | None) -> str:
    """The first sentence, without its full stop, cut at a word where it is long."""
    paragraph = " ".join((text or "").replace("\b", "").split("\n\n")[0].split())
    sentence = re.split(r"[.;] ", paragraph)[0].rstrip(".")
    if len(sentence) <= _SUMMARY:
        return sentence
    return sentence[: _SUMMARY - 1].rpartition(" ")[0] + "…"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _tuple(items: list[str]) -> str:
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


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
            if path.name == FILES["kubectl"]:
                target.chmod(0o755)
            sys.stdout.write(f"wrote {path}\n")
    sys.exit(1 if check and differs else 0)


if __name__ == "__main__":
    main()
