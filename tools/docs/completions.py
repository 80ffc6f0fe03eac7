"""Writes the table of the command line for completion, and the scripts under ``completions/``.

``python -m tools.docs.completions`` writes them; with ``--check`` it says what differs and exits with 1.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from kubectl_dra.cli.completion.run import FILES, script
from kubectl_dra.cli.completion.words import CONNECTION, DIRECTORY, EITHER, FILE, REPEATABLE, SWITCH, TEXT, Kind

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path("kubectl_dra/cli/completion/table.tsv")
FOLDER = Path("completions")
_SUMMARY = 90
_EFFECTS = {
    "None": "only says something",
    "NoSchedule": "no new pods",
    "NoExecute": "no new pods, running ones are evicted",
}
_BY_FLAG: Final = {
    "--namespace": "namespace",
    "--node": "node",
    "--class": "class",
    "--driver": "driver",
    "--pool": "pool",
    "--device": "device",
    "--trace": "device",
    "--request": "request",
    "--pod": "pod",
    "--claim": "claim",
    "--context": "context",
    "--cluster": "cluster",
    "--user": "user",
    "--from": "release",
    "--kubernetes-version": "release",
    "--to": "release",
    "--feature-gates": "gate",
    "--select": "rule",
    "--ignore": "rule",
    "--what-if": "change",
    "--with-node": FILE,
}
_BY_METAVAR: Final = {
    "PATH": FILE,
    "FILE": FILE,
    "MANIFEST": FILE,
    "DIR": DIRECTORY,
    "NS": "namespace",
    "NODE": "node",
    "DEVICE": "device",
    "DRIVER": "driver",
    "CLASS": "class",
    "TAINT": "taint",
    "CAUSE": "cause",
    "RULE": "rule",
}


_OWN_VALUES: Final = {"can": "asking", "demo": "example"}
"""Commands whose argument is one of a list that no cluster changes."""


def files() -> dict[Path, str]:
    """Every generated file by its path in the repository, as it should be."""
    out = {TABLE: table()}
    for shell, name in FILES.items():
        out[FOLDER / name] = script(shell)
    return out


def table() -> str:
    """The text of ``table.tsv``: a line for each command, argument, flag and value."""
    import typer.main

    from kubectl_dra.cli.main import everything

    root: Any = typer.main.get_command(everything())
    commands = [("", root), *_commands(root)]
    flags = {name: list(_flags(command)) for name, command in commands}
    connection = _shared_end([each for each in flags.values() if any(row[0] == "--kubeconfig" for row in each)])
    lines: list[tuple[str, ...]] = [("command", name, _summary(command)) for name, command in _commands(root)]
    for name, command in commands:
        found = (_argument(param, name) for param in command.params if _is(param, "argument"))
        lines += [("argument", name, *row) for row in found]
    for name, rows in flags.items():
        shared = bool(connection) and rows[-len(connection) :] == connection
        lines += [("flag", name, *row) for row in (rows[: -len(connection)] if shared else rows)]
        lines += [("connects", name)] if shared else []
    lines += [("flag", CONNECTION, *row) for row in connection]
    lines += [("value", kind, *row) for kind, rows in _values().items() for row in rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def _commands(root: Any) -> Iterator[tuple[str, Any]]:
    for name, command in root.commands.items():
        if not command.hidden:
            yield name, command


def _argument(parameter: Any, command: str) -> tuple[str, ...]:
    return _kind(_of_argument(parameter, command)), _again(parameter.nargs == -1)


def _flags(command: Any) -> Iterator[tuple[str, ...]]:
    for option in command.params:
        if not _is(option, "option") or getattr(option, "hidden", False):
            continue
        names = [*option.opts, *option.secondary_opts]
        short = next((name for name in names if not name.startswith("--")), "")
        repeatable = bool(getattr(option, "multiple", False)) or bool(getattr(option, "count", False))
        for name in (name for name in names if name.startswith("--")):
            yield name, _kind(_of_option(option)), _again(repeatable), short, _first(option.help)
    yield "--help", "", "", "-h", "Show the help and exit"


def _of_option(option: Any) -> Kind:
    """The kind of a click option."""
    if option.is_flag or option.count:
        return SWITCH
    if choices := _choices(option):
        return choices
    for name in option.opts:
        if name in _BY_FLAG:
            return _BY_FLAG[name]
    return _BY_METAVAR.get((option.metavar or "").strip("[]."), TEXT)


def _of_argument(argument: Any, command: str) -> Kind:
    """The kind of a click argument; ``device+taint`` where devices come first, then taints."""
    if choices := _choices(argument):
        return choices
    shown = argument.metavar or argument.name.upper()
    if command in _OWN_VALUES:
        return _OWN_VALUES[command]
    if "pod/" in shown:
        return "target"
    if "NODE" in shown:
        return "node"
    devices, taints = "DEVICE" in shown, "KEY" in shown or "TAINT" in shown
    taint = "untaint" if command == "untaint" else "taint"
    if devices or taints:
        return "+".join(word for word, there in (("device", devices), (taint, taints)) if there)
    return FILE if "PATH" in shown or "FILE" in shown else TEXT


def _choices(parameter: Any) -> tuple[str, ...]:
    return tuple(str(getattr(choice, "value", choice)) for choice in getattr(parameter.type, "choices", ()))


def _shared_end(commands: Sequence[list[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """The flags that all commands on a cluster have behind their own."""
    count = 0
    first = commands[0] if commands else []
    while count < len(first) and all(command[-count - 1 :] == first[-count - 1 :] for command in commands):
        count += 1
    return first[-count:] if count else []


def _kind(kind: Kind) -> str:
    return kind if isinstance(kind, str) else EITHER + EITHER.join(kind)


def _again(repeatable: bool) -> str:
    return REPEATABLE if repeatable else ""


def _values() -> dict[str, list[tuple[str, str]]]:
    from kubectl_dra.api.releases import NEWEST_MODELLED, OLDEST_MODELLED, known_gates
    from kubectl_dra.cli.can import NEEDS
    from kubectl_dra.cli.demo import played_examples
    from kubectl_dra.explain.causes.registry import all_kinds
    from kubectl_dra.lint.rules import RULES
    from kubectl_dra.taint.typed import EFFECTS

    minors = range(NEWEST_MODELLED.minor, OLDEST_MODELLED.minor - 1, -1)
    return {
        "release": [(f"1.{minor}", "") for minor in minors],
        "gate": [(gate, "") for gate in sorted(known_gates())],
        "effect": [(effect, _EFFECTS[effect]) for effect in EFFECTS],
        "cause": [(kind.code, _first(kind.title)) for kind in all_kinds()],
        "asking": [(command, "") for command in NEEDS],
        "example": [(name, example.title) for name, example in played_examples().items()],
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
