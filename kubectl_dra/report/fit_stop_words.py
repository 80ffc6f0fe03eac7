"""The sentences of ``fit`` about the first pod that does not fit: why, what keeps it besides, and what ends that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubectl_dra.command import CommandLine
from kubectl_dra.explain.cause_kinds import Family
from kubectl_dra.explain.causes.devices_published import NOT_FOR_NODE
from kubectl_dra.explain.causes.node_filters import NO_NODE
from kubectl_dra.explain.diagnosis import Finding
from kubectl_dra.explain.question.node_around import AskedLabel
from kubectl_dra.explain.question.node_in_words import LABEL
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.fit.pod_factory import Denied
from kubectl_dra.fit.result import FirstUnplaced, NodesNeeded, OneMoreNode, WorkloadFit
from kubectl_dra.report.explain_commands import Invocation, command, making
from kubectl_dra.report.explain_words import fix, proof, reason
from kubectl_dra.report.fit_words import every, making_it
from kubectl_dra.report.phrases import written
from kubectl_dra.text import amount, ended, join, some


def second(stop: FirstUnplaced) -> tuple[str, str]:
    """What would keep the pod that does not fit if its first cause were mended: the code, and why; else empty texts."""
    findings = stop.diagnosis.findings
    if stop.differs is not None or stop.domain or len(findings) < 2:
        return "", ""
    text = written(findings[1].summary)
    if _repeats(findings):
        return "", ""
    if findings[0].kind is NOT_FOR_NODE and findings[1].kind.held:
        text = f"where it can, {text}"
    return findings[1].kind.code, text


def _repeats(findings: Sequence[Finding]) -> bool:
    """Whether the second cause has the reasons of the first."""
    reasons = written(findings[1].summary).partition(": ")[2]
    return bool(reasons) and reasons in written(findings[0].summary)


def stop(workload: WorkloadFit, *, told: bool = False) -> str:
    """Why the first pod that does not fit has no node; empty where all have one.

    ``told``: the next cause is said beside it.
    """
    if workload.stop is None:
        return ""
    if differs := workload.stop.differs:
        who = f"pod {differs.pod} has priority {differs.priority}, group {differs.group} {differs.wanted}"
        return f"the scheduler tries no pod of a group of which one has another priority: {who}"
    if workload.stop.domain:
        label = workload.stop.domain
        return f"its group has to be within one {label}, and none has room for {workload.stop.minimum:,} of its pods"
    diagnosis = workload.stop.diagnosis
    if len(diagnosis.findings) > 1 and (told or _repeats(diagnosis.findings)):
        diagnosis = replace(diagnosis, findings=(diagnosis.findings[0], *diagnosis.findings[2:]))
    text = reason(diagnosis)
    if workload.stop.denied is not None and not workload.stop.diagnosis.findings:
        text = "a quota refuses it" if workload.stop.denied is Denied.POD else "a quota refuses its claim"
    return text


def own_fix(workload: WorkloadFit) -> str:
    """What ends the cause of the first pod that does not fit; empty where a change does so as well.

    What is not proved is said only where no change helps.
    """
    if workload.stop is None or workload.stop.differs is not None or workload.stop.domain:
        return ""
    if of_rollout := eased(workload):
        return of_rollout
    if (others := workload.stop.others_if_first) is not None:
        placed, pods = others
        rest = "all of them" if placed == pods else f"{placed:,} of {amount(pods, 'pod')} of them"
        return f"Apply it before the others of the manifest: then all of it fits, and {rest}."
    if workload.stop.way is not None and workload.stop.fitting_with_fix is not None:
        way = written(workload.stop.way.changes[0])
        then = _fitting_then(workload, workload.stop)
        return f"{way[:1].upper()}{way[1:]}; with that in the template {then}."
    first = next(iter(workload.stop.diagnosis.findings), None)
    # What nodes refuse a pod for has a fix only where that was proved: another reason may come after it.
    if first is None:
        return ""
    no_pod_there = first.remedy is not None and first.remedy.no_pod_there
    if first.proof is None and not no_pod_there and (workload.more or first.kind in (NO_NODE, NOT_FOR_NODE)):
        return ""
    if first.remedy is not None and any(isinstance(offer, Free | EndPods) for offer in first.remedy.offers):
        return ""
    if set(fix_commands(workload, Invocation())) & {line for more in workload.more for line in making_it(more.change)}:
        return ""
    if first.remedy is not None and first.remedy.adds_node:
        # That the pod fits on the new node, the change says.
        told = first.kind.family is Family.DEVICES and any(
            isinstance(each.change, OneMoreNode) for each in workload.more
        )
        return "" if told else fix(first)
    text = fix(first).removesuffix(".")
    if workload.stop.fitting_with_fix is not None:
        return f"{text}; with that in the template {_fitting_then(workload, workload.stop)}."
    return f"{text}; {proof(first.proof, short=True)}." if first.proof is not None else ended(text)


def _fitting_then(workload: WorkloadFit, stop: FirstUnplaced) -> str:
    number, unit, fitting = workload.replicas, workload.workload.unit, stop.fitting_with_fix or 0
    if workload.as_many:
        return f"{amount(fitting, unit)} {'fits' if fitting == 1 else 'fit'} at most"
    if number == 1:
        return (
            f"it fits, all {workload.pods:,} pods"
            if fitting == 1
            else f"{stop.placed_with_fix:,} of its {workload.pods:,} pods fit"
        )
    if fitting == number:
        return f"{every(number, unit)} fit"
    return f"{fitting:,} of {amount(number, unit)} {'fits' if fitting == 1 else 'fit'}"


def code(workload: WorkloadFit) -> str:
    """The code of the cause; empty where none was found."""
    findings = workload.stop.diagnosis.findings if workload.stop is not None else ()
    return findings[0].kind.code if findings else ""


def fix_commands(workload: WorkloadFit, invocation: Invocation) -> tuple[CommandLine, ...]:
    """The commands of ``own_fix``, else the one that shows what to mend."""
    finding = next(iter(workload.stop.diagnosis.findings), None) if workload.stop is not None else None
    if finding is None or workload.stop is None or workload.stop.way is not None or eased(workload):
        return ()
    if workload.stop.others_if_first is not None:
        return ()
    remedy = finding.remedy
    if own := (*making(remedy.made), *remedy.commands) if remedy is not None else ():
        return own
    placed = finding.proof is None or (remedy is not None and remedy.place is not None)
    look = command(finding.place_of_fix, invocation) if placed else None
    return (look,) if look is not None else ()


def eased(workload: WorkloadFit) -> str:
    """Advice for a rollout that stops; empty where it does not stop, or that is not known."""
    replaced = workload.replaced
    if replaced is None or replaced.unavailable is None:
        return ""
    then = "it fits" if workload.replicas == 1 else f"{every(workload.replicas, workload.workload.unit)} fit"
    number = replaced.first
    if workload.workload.of_each_node:
        return (
            f"Set maxSurge to 0 and maxUnavailable to {replaced.unavailable:,} in spec.updateStrategy.rollingUpdate, "
            f"so that a pod of the former template ends before the one that replaces it comes: then {then}."
        )
    return (
        f"Set spec.strategy.rollingUpdate.maxUnavailable to {replaced.unavailable:,}, so that {amount(number, 'pod')} "
        f"of the former template {'ends' if number == 1 else 'end'} first: then {then}."
    )


# New nodes: with which an answer is, and how many it takes.


def supposing(given: Mapping[str, int]) -> str:
    """The new nodes with which an answer is, each with their number."""
    nodes = (f"{amount(number, 'new node')} ({typed})" for typed, number in given.items())
    return f"With {join(nodes)}"


def needed(needed: NodesNeeded) -> str:
    """Number of new nodes that it takes, in one sentence."""
    which, number = f"({needed.nodes})", amount(needed.number, "new node")
    if needed.domains:
        return f"How many new nodes {which} it takes depends on {join(list(map(_domain, needed.domains)))}"
    fewer, fits = "", "fit and start" if needed.idle else "fit"
    if needed.fewer is not None:
        count, placed = needed.fewer
        does = f"{placed or 'none'} of {amount(needed.pods, 'pod')}" if needed.pods > 1 else "the pod does not"
        fewer = f"; with {count or 'none'}, {does} {fits}"
    if needed.enough:
        provided = f", if {written(needed.provided)}" if needed.provided else ""
        takes = f"It takes {number} {which}{provided}{fewer}" if needed.number else f"No new node {which} is needed"
        return takes + _after_others(needed)
    if not needed.number:
        return f"New nodes {which} do not help: {_tried(needed)}"
    fit = f"{needed.placed:,} of {amount(needed.pods, 'pod')}"
    if needed.ended:
        return f"With {number} {which} {fit} {fits}; each more helps, but no more are tried"
    return f"With {number} {which} {fit} {fits}, and more do not help: {_tried(needed)}"


def _domain(label: AskedLabel) -> str:
    """A label of new nodes of which nobody knows the value, with those that the cluster has."""
    there = f"; those here have {some(label.there, 3)}" if label.there else ""
    return f"label {label.key} of each, which is not known{there}"


def in_domain(needed: NodesNeeded, invocation: Invocation) -> CommandLine | None:
    """The question with the first value that the cluster has of labels that decide; None where it has none."""
    if not needed.domains or not invocation.argv or not all(label.there for label in needed.domains):
        return None
    labels = ",".join(f"{LABEL}{label.key}={label.there[0]}" for label in needed.domains)
    exact = [f"{word},{labels}" if word == needed.nodes else word for word in invocation.argv]
    return invocation._replace(argv=tuple(exact)).refined()


def _after_others(needed: NodesNeeded) -> str:
    """Number of new nodes if waiting pods are placed first; empty where there are none."""
    if not needed.others:
        return ""
    one = len(needed.others) == 1
    who = f"pod {needed.others[0]}" if one else f"pods {some(needed.others, 2)}"
    if needed.after == needed.number:
        return f". The same if {who}, which {'waits' if one else 'wait'} already, {'is' if one else 'are'} placed first"
    takes = f"it takes {needed.after:,}" if needed.after is not None else f"not all of them fit: {_tried(needed)}"
    return f". If {who}, which {'waits' if one else 'wait'} already, {'is' if one else 'are'} placed first, {takes}"


def _tried(needed: NodesNeeded) -> str:
    return f"up to {needed.most:,} were tried"
