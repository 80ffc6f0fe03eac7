"""Flags of ``kubectl get`` that a command does not have, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from kubectl_dra.errors import UsageError

_LONG: Final = {
    "--all-namespaces": "-A",
    "--namespace": "-n",
    "--selector": "-l",
    "--output": "-o",
    "--watch": "-w",
}
_ONE_CLUSTER: Final = "it counts the whole cluster"
_PLACES: Final = "it places the pods of a manifest and lists nothing"
_TAINTS: Final = "devices and their taints are in no namespace and have no labels"
_WHY: Final[Mapping[str, Mapping[str, str]]] = {
    "devices": {"-l": "devices have no labels; --selector CEL, --class and --node choose among them"},
    "top": {
        "-l": "it counts whatever has labels or not; kubectl dra claims -l lists claims by theirs",
        "-o name": "its rows are counts; devices -o name and claims -o name list objects",
        "-o wide": "its table has every column; in a pipe none is left out",
    },
    "drivers": {
        "-n": "a driver serves nodes, whatever the namespace of its pods; name drivers, or nodes with --node",
        "-l": "drivers have no labels; name them, or nodes with --node",
        "--sort-by": "the worst comes first; -o json has all that can be sorted",
    },
    "explain": {
        "--sort-by": "what is stuck comes first",
        "-o wide": "its list has every column; --full lists all rows",
    },
    "fit": {
        "-A": "the manifest says the namespaces",
        "-l": _PLACES,
        "-w": "it answers once; explain -w watches a pod",
        "--no-headers": _PLACES,
        "--sort-by": _PLACES,
        "-o name": f"{_PLACES}; -o json has each pod and its node",
        "-o wide": f"{_PLACES}; -o json has each pod and its node",
    },
    "metrics": {
        **dict.fromkeys(("-A", "-l"), _ONE_CLUSTER),
        "-n": f"{_ONE_CLUSTER}; what is about a namespace has it as a label",
        "-o": "it prints the text format of Prometheus",
        "-w": "--listen serves them while it watches the cluster",
        **dict.fromkeys(("--no-headers", "--sort-by"), "it prints the text format of Prometheus"),
    },
    "taint": {
        "-l": _TAINTS,
        "-w": "--list prints once; kubectl dra devices --tainted -w watches",
        "--sort-by": "--list is in the order of devices; -o json has all that can be sorted",
        "-o wide": "--list has every column",
    },
}


_PATHS: Final = {"metadata.name": "name", "metadata.creationTimestamp": "age"}
"""What kubectl sorts by most, and our word for it."""


def sorted_by(words: Sequence[str]) -> list[str]:
    """The words with our values of ``--sort-by`` in place of a JSONPath such as ``.metadata.name``."""
    out: list[str] = []
    for word in words:
        flag, equals, value = word.partition("=") if word.startswith("--sort-by=") else ("", "", word)
        if equals or out[-1:] == ["--sort-by"]:
            value = _PATHS.get(value.strip("{}").removeprefix("."), value)
        out.append(f"{flag}{equals}{value}")
    return out


def why_not(command: str, words: Sequence[str], flag: str, takes: Sequence[str]) -> UsageError | None:
    """The error for a flag of kubectl that the command does not have; None where nothing is known of it.

    ``takes`` are the values that its ``-o`` has, where it is about that flag.
    """
    flag = _LONG.get(flag, flag)
    known = _WHY.get(command, {})
    if flag == "-o" and takes:
        value = _output(words)
        if f"-o {value}" not in known:
            return None
        return UsageError(f"{command} has no -o {value}: {known[f'-o {value}']}; it has {', '.join(takes)}")
    if flag not in known:
        return None
    return UsageError(f"{command} takes no {flag}: {known[flag]}")


def _output(words: Sequence[str]) -> str:
    """The last value of ``-o``."""
    values = [
        value if word in ("-o", "--output") else word.removeprefix("--output=").removeprefix("-o").removeprefix("=")
        for word, value in pairwise((*words, ""))
        if word.startswith(("-o", "--output"))
    ]
    return values[-1] if values else ""
