"""What a flag or an argument takes, found from the command line's own declaration."""

from __future__ import annotations

from typing import Any, Final

Kind = str | tuple[str, ...]
"""The values of a flag or argument: a tuple of words, or the name of a kind of value (see below)."""

SWITCH: Final = ""
"""A flag without a value."""
TEXT: Final = "text"
"""Free text: nothing to offer."""
FILE: Final = "file"
DIRECTORY: Final = "directory"

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
    "--rule": "rule",
    "--cause": "cause",
    "--what-if": "change",
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
}


def of_option(option: Any) -> Kind:
    """The kind of a click option."""
    if option.is_flag or option.count:
        return SWITCH
    if choices := _choices(option):
        return choices
    for name in option.opts:
        if name in _BY_FLAG:
            return _BY_FLAG[name]
    return _BY_METAVAR.get((option.metavar or "").strip("[]."), TEXT)


def of_argument(argument: Any, command: str) -> Kind:
    """The kind of a click argument; ``device+taint`` where devices come first, then taints."""
    if choices := _choices(argument):
        return choices
    shown = argument.metavar or argument.name.upper()
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
