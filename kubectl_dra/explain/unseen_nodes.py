"""What is said of nodes that are only supposed: that they take a pod, and no commands about them.

Commands are taken out of a finished diagnosis: a hundred places in causes and remedies name some, and none of them has
to know which nodes are real.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from msgspec.structs import replace

from kubectl_dra.command import CommandLine
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, RemedyPlan
from kubectl_dra.explain.question.what_if_flag import WITH_NODE

_PARTS: Final = re.compile("[/=,]")
_WITH_NODES: Final = (Look.DEVICES, Look.SELECTORS, Look.ONE_DEVICE)
"""What asks the same question again, with the same new nodes."""


def with_takers(found: Diagnosis, analysis: Analysis) -> Diagnosis:
    """The diagnosis of a pod without claims that fits, with the nodes that take it: a new one may be the only one."""
    if found.verdict is not Verdict.SCHEDULABLE or analysis.question.claims:
        return found
    return replace(found, fitting=tuple(analysis.takers))


def without_commands_for(nodes: Set[str], diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis without the commands that are about these nodes."""
    return replace(
        diagnosis,
        next=_step(diagnosis.next, nodes),
        findings=tuple(_of_finding(finding, nodes) for finding in diagnosis.findings),
        ways=tuple(_of_plan(way, nodes) for way in diagnosis.ways),
    )


def _of_finding(finding: Finding, nodes: Set[str]) -> Finding:
    remedy = finding.remedy
    if remedy is not None:
        commands = tuple(command for command in remedy.commands if not _about(command, nodes))
        remedy = replace(remedy, commands=commands, place=_step(remedy.place, nodes))
    return replace(
        finding, remedy=remedy, next=_step(finding.next, nodes), place_of_fix=_step(finding.place_of_fix, nodes)
    )


def _of_plan(plan: RemedyPlan, nodes: Set[str]) -> RemedyPlan:
    return replace(plan, place=_step(plan.place, nodes))


def _step(step: NextStep | None, nodes: Set[str]) -> NextStep | None:
    if step is None or step.look in _WITH_NODES:
        return step
    return None if not nodes.isdisjoint((step.name, step.kind)) else step


def _about(command: CommandLine, nodes: Set[str]) -> bool:
    words = command.argv
    if f"--{WITH_NODE}" in words:
        return False
    return any(not nodes.isdisjoint(_PARTS.split(word)) for word in words)
