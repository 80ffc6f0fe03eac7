"""The sentences of ``fit``: the answer, what stops the next pod, and what each change brings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubectl_dra.api.pods import owner_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Gap
from kubectl_dra.command import ClusterFlags, CommandLine, creating_namespace, deleting
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.causes.not_tried import CHANGE_REFUSED
from kubectl_dra.explain.driver_refusals import refused
from kubectl_dra.explain.phrase import Subject
from kubectl_dra.explain.remedies.ending_pods import EndPods
from kubectl_dra.explain.unread_kind import Unread, if_none
from kubectl_dra.fit.existing_pods import JobProgress
from kubectl_dra.fit.place import evicted
from kubectl_dra.fit.result import (
    ChangeSort,
    ClusterChange,
    EndRule,
    FitAnswer,
    FormerPods,
    More,
    OneMoreNode,
    WorkloadFit,
)
from kubectl_dra.fit.starting import Starting
from kubectl_dra.fit.workload import WorkloadPods
from kubectl_dra.grouped import grouped
from kubectl_dra.manifests.pod_counts import completions_of
from kubectl_dra.report.blocks import Block, prose, shell
from kubectl_dra.report.explain_commands import Invocation, command, making
from kubectl_dra.report.explain_words import idle, if_there_is_none, taken_first
from kubectl_dra.report.phrases import written
from kubectl_dra.text import amount, join, some


def headline(workload: WorkloadFit) -> str:
    """The answer in one sentence."""
    if gaps := conditions(workload):
        one = workload.pods == 1 and not workload.as_many
        condition = if_there_is_none(gaps, workload.workload.namespace, "it" if one else "them")
        return f"{_count(workload)} if {condition}{_beside(workload)}{_idle(workload)}."
    if workload.unclear and workload.verdict is Verdict.UNSCHEDULABLE:
        return f"{_at_most(workload)}: {written(workload.unclear[0])}."
    if workload.unclear:
        return f"{workload.workload.title}: undetermined: {written(workload.unclear[0])}.{_by_devices(workload)}"
    if workload.refused and not workload.placed:
        said = CHANGE_REFUSED.state if _itself_refused(workload) else "does not fit"
        return f"{workload.workload.title} {said}{_beside(workload)}."
    if workload.verdict is Verdict.NOT_STARTING and not (workload.as_many and workload.starting):
        return f"{_starting(workload)}."
    if workload.verdict is Verdict.UNDETERMINED and workload.begin.maybe:
        return f"{_count(workload)}{_beside(workload)}, but whether they start is undetermined: {maybe(workload)}."
    provided = f", if {written(workload.provided)}" if workload.provided else ""
    return f"{_count(workload)}{provided}{_beside(workload)}{_idle(workload)}."


def _at_most(fitted: WorkloadFit) -> str:
    """How many fit where other objects, which were not read, can only take room."""
    workload = fitted.workload
    if fitted.replicas == 1:
        return f"{workload.title} does not fit, whatever else there is"
    if not fitted.fitting:
        return f"{_count(fitted)}, whatever else there is"
    return f"At most {fitted.fitting:,} of {amount(fitted.replicas, workload.unit)} {_of(workload)} fit"


def _itself_refused(workload: WorkloadFit) -> bool:
    """Whether it is the workload that cannot be changed, and not what its pods need."""
    findings = workload.stop.diagnosis.findings if workload.stop is not None else ()
    facts = [fact.object for finding in findings[:1] for fact in finding.evidence]
    return all(isinstance(fact, Subject) and fact.kind == workload.workload.kind for fact in facts)


def conditions(workload: WorkloadFit) -> tuple[Gap, ...]:
    """The kinds of which there must be no object for the answer to hold, where nothing else is open."""
    return if_none(workload.unclear)


def is_open(answer: FitAnswer) -> bool:
    """Whether something that decides was not read, so that no number of new nodes means anything."""
    return any(workload.unclear and not conditions(workload) for workload in answer.workloads)


def missing(names: Sequence[str], where: ClusterFlags) -> list[Block]:
    """Note that namespaces do not exist, which the rest supposes, and how to create them."""
    if not names:
        return []
    one = len(names) == 1
    what = f"Namespace {names[0]} does not exist" if one else f"Namespaces {some(names)} do not exist"
    said = prose(f"{what}, so no pod in {'it is' if one else 'them is'} created. With {'it' if one else 'them'}:")
    return [said, shell([creating_namespace(name) for name in names], where)]


def maybe(workload: WorkloadFit) -> str:
    """Note on other nodes that the scheduler may take, on which pods do not start; else empty."""
    where = workload.begin.maybe
    if not where:
        return ""
    return f"the scheduler may as well take {some([node.node for node in where], 2)}, where {written(where[0].why)}"


def _starting(fitted: WorkloadFit) -> str:
    """Number of the pods with a node that start, and why the others do not."""
    workload, begin = fitted.workload, fitted.begin
    unit = workload.unit if workload.size == 1 else "pod"
    if fitted.placed == 1:
        lead = f"{workload.title} does not start"
        where = f"it goes to {begin.nodes[0].node}" if begin.nodes else ""
    elif not fitted.starting:
        lead = f"None of the {amount(fitted.placed, unit)} {_of(workload)} starts"
        where = f"all go to {_broken(begin)}"
    else:
        verb = "starts" if fitted.starting == 1 else "start"
        lead = f"{fitted.starting:,} of {amount(fitted.placed, unit)} {_of(workload)} {verb}"
        where = "the other one goes" if begin.lost == 1 else f"the other {begin.lost:,} go"
        where = f"{where} to {_broken(begin)}"
    if begin.refused:
        return f"{lead}: {written(refused(begin.refused))}"
    return f"{lead}: {where}, where {written(begin.nodes[0].why)}"


def _broken(begin: Starting) -> str:
    """The nodes where placed pods do not start."""
    return some([node.node for node in begin.nodes], 2)


def _by_devices(workload: WorkloadFit) -> str:
    """What the devices alone say where no nodes were read."""
    why = workload.unclear[0]
    if not isinstance(why, Unread) or why.gap.kind != "Node" or not workload.placed_pods:
        return ""
    whose = "Its" if workload.workload.name else "Their"
    if workload.as_many:
        return f" {whose} devices alone would fit {amount(workload.fitting, workload.workload.unit)}."
    return (
        f" {whose} devices alone would fit {workload.fitting:,} of {amount(workload.replicas, workload.workload.unit)}."
    )


def _count(fitted: WorkloadFit) -> str:
    workload, title = fitted.workload, fitted.workload.title
    unit, size = unit_of(fitted), workload.size
    # Bare pods have no name in common: "Pods of team" instead of "Deployment team/web".
    fits, does = ("fits", "does") if workload.name else ("fit", "do")
    inner = f" ({fitted.placed:,} of {amount(fitted.pods, 'pod')})" if size > 1 else ""
    if not fitted.pods and not fitted.as_many:
        over = fitted.progress.over if fitted.progress is not None else ""
        if workload.of_each_node:
            why = f" ({written(fitted.no_node)})" if fitted.no_node else ""
            return f"{title} makes no pod: no node may run one{why}"
        return f"{title} {over}, and makes no pod" if over else f"{title} makes no pod: it has 0 replicas"
    if fitted.as_many:
        if not fitted.fitting:
            return f"Not one {unit} {_of(workload)} fits"
        how = "At least" if fitted.at_least else "At most"
        verb = "fits" if fitted.fitting == 1 else "fit"
        return f"{how} {amount(fitted.fitting, unit)} {_of(workload)} {verb}"
    if fitted.stop is not None and fitted.stop.minimum:
        at_once = f"it needs {fitted.stop.minimum:,} at once"
        if fitted.placed:
            return f"{fitted.placed:,} of the {amount(fitted.pods, 'pod')} {_of(workload)} fit, and {at_once}"
        return (
            f"{title} {does} not fit: {fitted.stop.placed:,} of its {amount(fitted.pods, 'pod')} would, and {at_once}"
        )
    if fitted.replicas == 1:
        if fitted.all_placed or (conditions(fitted) and fitted.fitting):
            on = f" on {fitted.placed_pods[0].node}" if len(fitted.placed_pods) == 1 else ""
            return f"{title} {fits}" + (f": all {amount(fitted.pods, 'pod')}" if size > 1 else on)
        return f"{title} {does} not fit" + (
            f": {fitted.placed:,} of its {amount(fitted.pods, 'pod')} do" if size > 1 else ""
        )
    if fitted.all_placed:
        all_of = every(fitted.replicas, unit)
        return f"{all_of[:1].upper()}{all_of[1:]} {_of(workload)} fit"
    if not fitted.fitting:
        return f"None of the {amount(fitted.replicas, unit)} {_of(workload)} fits{inner}"
    verb = "fits" if fitted.fitting == 1 else "fit"
    return f"{fitted.fitting:,} of {amount(fitted.replicas, unit)} {_of(workload)} {verb}{inner}"


def every(number: int, unit: str) -> str:
    """All of so many, which are several."""
    return f"both {amount(2, unit).partition(' ')[2]}" if number == 2 else f"all {amount(number, unit)}"


def unit_of(workload: WorkloadFit) -> str:
    """What a replica is called: of several bare pods together a copy of them."""
    bare = workload.workload.kind == "Pod" and len(workload.workload.roles) > 1
    return "copy" if bare and (workload.replicas > 1 or workload.as_many) else workload.workload.unit


def _of(workload: WorkloadPods) -> str:
    """``of`` the workload, or ``like`` it for a bare pod, of which there are no others."""
    if not workload.name and workload.kind == "Pod" and len(workload.roles) > 1:
        return f"of the {len(workload.roles):,} {workload.title}"
    return f"{'like' if workload.name and workload.kind == 'Pod' else 'of'} {workload.title}"


def _beside(workload: WorkloadFit) -> str:
    said = []
    if workload.running:
        whose = "it" if workload.workload.name else "them"
        of_former = f", {'all' if workload.former == workload.running else f'{workload.former:,}'} of a former template"
        already = f"{amount(workload.running, 'pod')} of {whose} {'runs' if workload.running == 1 else 'run'} already"
        said.append(already + (of_former if workload.former else ""))
        if workload.former and (stays := _replaced_later(workload.workload)):
            said.append(stays)
    if workload.workload.suspended:
        said.append("it is suspended, and makes no pod until it is resumed")
    if ended := workload.surplus.count:
        others = len(workload.surplus.alike) if workload.surplus.open else 0
        which = f" (any {workload.surplus.number:,} of {others:,})" if others else ""
        said.append(f"{amount(ended, 'pod')} too many {'ends' if ended == 1 else 'end'} first{which}")
    if workload.progress is not None and not workload.progress.over:
        said.append(_progress(workload.progress))
    if workload.replaced is not None:
        said.append(_rollout(workload.replaced))
    if workload.as_many and (job := completions_of(workload.workload.raw)) and job[1] < workload.fitting:
        said.append(f"it has {amount(job[0], 'completion')}, {job[1]:,} at a time")
    if victims := evicted(workload.placed_pods):
        said.append(f"for them the scheduler ends {some([f'pod {pod.key}' for pod in victims], 3)}")
    if workload.fewest != workload.greatest:
        said.append(
            f"{workload.fewest:,} to {workload.greatest:,} pods have room, depending on {written(workload.depends)}"
        )
    return f"; {'; '.join(said)}" if said else ""


def _replaced_later(workload: WorkloadPods) -> str:
    """Why pods of a former template run on; empty where nothing says so."""
    spec = workload.raw.get("spec") or {}
    if workload.kind == "Deployment" and spec.get("paused") is True:
        return "it is paused, and replaces no pod until it is resumed"
    strategy = spec.get("updateStrategy")
    if isinstance(strategy, Mapping) and strategy.get("type") == "OnDelete":
        return "each is replaced once you delete it (OnDelete); whether its successor fits was not tried"
    return ""


def _progress(progress: JobProgress) -> str:
    """How many pods of a Job have succeeded already."""
    done = f"{progress.succeeded:,} of {amount(progress.completions, 'completion')}"
    if not progress.completions:
        return "a pod of it has succeeded, so that it makes no more"
    return f"{done} {'is' if progress.succeeded == 1 else 'are'} reached"


def _rollout(replaced: FormerPods) -> str:
    """What comes of the pods of a former template."""
    pods = f"{amount(replaced.pods, 'pod')} of the former template"
    if not replaced.left:
        return f"the rollout ends {pods}"
    if replaced.left == replaced.pods:
        return f"the rollout stops, and {pods} {'runs' if replaced.pods == 1 else 'run'} on"
    return f"the rollout stops, and {replaced.left:,} of {pods} {'runs' if replaced.left == 1 else 'run'} on"


def _idle(workload: WorkloadFit) -> str:
    """Number of the placed pods that do not start, and why."""
    begin = workload.begin
    if not begin.lost:
        return ""
    one = begin.lost == 1
    every = begin.lost == len(workload.placed_pods) > 1
    who, whose = "all" if every else f"{begin.lost:,}", "them" if workload.workload.size == 1 else "their pods"
    if begin.refused:
        does = f"none of {whose} starts" if every else f"{who} of {whose} {'does' if one else 'do'} not start"
        return f", but {does}: {written(refused(begin.refused))}"
    goes, does = ("goes", "it does") if one else ("go", "they do")
    return f", but {who} of {whose} {goes} to {_broken(begin)}, where {does} not start: {written(begin.nodes[0].why)}"


def tried(changes: Mapping[ChangeSort, int], but: str) -> str:
    """Note that nothing that was tried helps, and what that was; ``but`` says what was left out."""
    total = sum(changes.values())
    sorts = join(_TRIED[sort] if total == 1 else f"{_TRIED[sort]} ({number:,})" for sort, number in changes.items())
    if total == 1:
        return f"The one change that was tried does not make room by itself{but}: {sorts}."
    return f"{total:,} changes were tried, and none makes room by itself{but}: {sorts}."


_TRIED: Final = {
    ChangeSort.RULES: "deleting DeviceTaintRules",
    ChangeSort.CLAIMS: "freeing claims",
    ChangeSort.PODS: "ending pods without claims",
    ChangeSort.NODES: "one more node like those there are",
}


class NodeOfPods(NamedTuple):
    """A node with how many pods get it, and of each of their devices the claims, a claim for each pod that uses it."""

    node: str
    pods: int
    claims: Mapping[DeviceID, Sequence[str]]

    def called(self, device: DeviceID) -> str:
        """The name of a device, without its pool where that is called as the node."""
        return device.device if device.pool == self.node else f"{device.pool}/{device.device}"

    def taken(self, device: DeviceID) -> str:
        """The same with how many shares of it are taken, or how many pods use the one claim that has it."""
        claims = self.claims[device]
        shares = len({*claims})
        if shares > 1:
            return f"{self.called(device)} ({shares} shares)"
        return f"{self.called(device)} (one claim, {len(claims)} pods)" if len(claims) > 1 else self.called(device)


def places(workload: WorkloadFit) -> list[NodeOfPods]:
    """The nodes that pods get, most pods first."""
    pods: Counter[str] = Counter()
    claims: dict[str, dict[DeviceID, list[str]]] = defaultdict(lambda: defaultdict(list))
    for placed_pod in workload.placed_pods:
        pods[placed_pod.node] += 1
        for claim in placed_pod.claims:
            for device in claim.devices:
                claims[placed_pod.node][device].append(claim.metadata.name)
    ranked = sorted(pods, key=lambda name: (-pods[name], name))
    return [NodeOfPods(name, pods[name], claims[name]) for name in ranked]


def without(workload: WorkloadFit) -> list[str]:
    """The nodes whose pod of a DaemonSet does not fit, by the cause."""
    by_cause = grouped((node.cause, node.node) for node in workload.without)
    return [f"no pod on {some(nodes, 6)}{f': {cause}' if cause else ''}" for cause, nodes in by_cause.items()]


def change(what: ClusterChange) -> str:
    """A change in words."""
    if isinstance(what, OneMoreNode):
        exist = f" ({amount(what.alike, 'such node')} {'exists' if what.alike == 1 else 'exist'})" if what.alike else ""
        return f"add one more node like {what.like}{exist}"
    if isinstance(what, EndRule):
        return f"delete DeviceTaintRule {what.rule} once the maintenance is over"
    if isinstance(what, EndPods):
        owner = next(filter(None, map(owner_of, what.ended)), None) if what.fewer is None else None
        again = f" (of {owner}, which may recreate it)" if owner is not None else ""
        return f"{written(what.what)}{again}"
    return written(what.what)


def making_it(what: ClusterChange) -> tuple[CommandLine, ...]:
    """The commands that make a change; none where it takes more than commands."""
    return (deleting("devicetaintrule", what.rule),) if isinstance(what, EndRule) else making([what])


def gain(workload: WorkloadFit, more: More) -> str:
    """What a change brings."""
    return _gain(workload, more) + idle(more.not_starting) + taken_first(more.rivals)


def _gain(workload: WorkloadFit, more: More) -> str:
    unit, one_by_one = unit_of(workload), workload.workload.size == 1
    whole = not workload.as_many and workload.fitting + more.replicas == workload.replicas
    if whole and workload.replicas == 1:
        return "then it fits" if one_by_one else f"then it fits, all {amount(workload.pods, 'pod')}"
    verb = "fits" if more.pods == 1 else "fit"
    if one_by_one:
        them_all = "both" if workload.replicas == 2 else f"all {workload.replicas:,}"
        return f"{amount(more.pods, f'more {unit}')} {verb}{f', and so {them_all}' if whole else ''}"
    if workload.as_many and more.replicas:
        return f"{amount(more.replicas, f'more {unit}')} {'fits' if more.replicas == 1 else 'fit'}"
    pods = f"{amount(more.pods, 'more pod')} {verb}"
    if workload.replicas == 1 and not workload.as_many:
        return f"{pods}, but not all of it"
    return (
        f"{pods}, {amount(more.replicas, f'more whole {unit}')}" if more.replicas else f"{pods}, no more whole {unit}"
    )


def with_node(what: ClusterChange, invocation: Invocation) -> CommandLine | None:
    """The question with one more node; None of other changes."""
    if not isinstance(what, OneMoreNode) or not invocation.argv:
        return None
    return invocation.refined("--with-node", f"{what.like},count=1", others=(what.like,))


def broken_node(workload: WorkloadFit, invocation: Invocation) -> CommandLine | None:
    """What shows why pods do not start on the first such node; None where they start."""
    broken = (*workload.begin.nodes, *workload.begin.maybe)
    return command(NextStep(Look.EXPLAIN_NODE, broken[0].node), invocation) if broken else None
