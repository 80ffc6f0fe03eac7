"""Flags that only a pod or claim can be asked about with."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubectl_dra.cli.explain import ExplainFlags
from kubectl_dra.errors import UsageError

SCHEDULER_CONFIG: Final = "--scheduler-config"
RELEASE: Final = ("--kubernetes-version", "--feature-gates")


def refuse_flags(asked: ExplainFlags, needed: str, allowed: Collection[str]) -> None:
    """Refuse each flag that would change nothing about the answer, unless it is ``allowed``.

    Raises:
        UsageError: such a flag was given; it says what is ``needed``.
    """
    release, gates = RELEASE
    for flag, given in (
        ("--what-if", asked.what_if),
        ("--with-node", asked.with_nodes),
        ("--watch", asked.watch),
        ("--trace", asked.trace),
        ("--verify", asked.verify),
        ("--request", asked.request),
        ("--node", asked.node),
        ("-f", asked.manifests),
        (SCHEDULER_CONFIG, asked.scheduler_config),
        (release, asked.release),
        (gates, asked.gates),
    ):
        if given and flag not in allowed:
            raise UsageError(f"{flag} needs {needed}")
