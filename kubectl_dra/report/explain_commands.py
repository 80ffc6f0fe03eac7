"""The commands of a diagnosis: what to look at next, what makes a change, and what would show the answer with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from kubectl_dra.api.pods import Owner, Pod
from kubectl_dra.command import CURRENT, Argv, ClusterFlags, CommandEffect, CommandLine, deleting, kubectl, misnamed
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, RemedyPlan
from kubectl_dra.explain.holders import ClaimHolder, HolderState
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.explain.remedies.fewer_replicas import STATEFUL, FewerReplicas, by_number
from kubectl_dra.explain.remedies.freeing_claims import Free
from kubectl_dra.explain.remedies.proof import Price, Proof
from kubectl_dra.explain.remedies.prove import Change


class Invocation(NamedTuple):
    """How the question was asked, to be repeated in what to do next.

    ``argv`` is the command line up to what only refines the output, empty where the question was another one;
    ``where`` has those of its flags that choose the cluster or the snapshot. With ``several`` more than one was asked
    about, and ``argv`` names none of them.
    """

    argv: Argv = ()
    where: ClusterFlags = CURRENT
    several: bool = False

    def about(self, diagnosis: Diagnosis) -> Invocation:
        """The question about one of those that were asked about."""
        if not self.several:
            return self
        kind = "template" if diagnosis.of_template else diagnosis.kind
        subject = (f"{kind}/{diagnosis.name}", *(("-n", diagnosis.namespace) if diagnosis.namespace else ()))
        return Invocation((*self.argv[:3], *subject, *self.argv[3:]), self.where)

    def refined(self, *flags: str, others: Iterable[str] = ()) -> CommandLine:
        """The same question with more flags, in which names are ``others``."""
        return CommandLine((*self.argv, *flags), misnamed=misnamed(others), placed=True)


_COMMANDS: Final = {
    Look.ALL_PODS: "get pods -A -o wide",
    Look.LABELS_OF_PODS: "get pods -A -o wide --show-labels",
    Look.VOLUMES_ATTACHED: "get volumeattachments",
    Look.CLASSES: "get deviceclasses",
    Look.RESOURCES_OF_CLASSES: "get deviceclasses "
    "-o custom-columns=NAME:.metadata.name,RESOURCE:.spec.extendedResourceName",
    Look.NODES: "get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints",
    Look.LABELS_OF_NODES: "get nodes --show-labels",
    Look.FEATURES_OF_NODES: "get nodes -o custom-columns=NAME:.metadata.name,FEATURES:.status.declaredFeatures",
    Look.VERSION: "dra version",
    Look.TAINTS: "dra taint --list",
    Look.TAINTED_DEVICES: "dra devices --tainted -o wide",
    Look.WEBHOOKS: "get mutatingwebhookconfigurations",
    Look.SNAPSHOT: "dra snapshot -o cluster.yaml",
    Look.DAEMON_SETS: "get daemonsets -A",
    Look.DRIVERS: "dra drivers",
}
"""Commands without a name."""


_EXPLAINED: Final = {Look.EXPLAIN_POD: "pod", Look.EXPLAIN_NODE: "node", Look.CLAIM_HOLDER: "claim"}


def command(step: NextStep | None, invocation: Invocation) -> CommandLine | None:
    """The command that shows what to look at next; None where there is none."""
    if step is None or (step.look in (Look.DEVICES, Look.ONE_DEVICE, Look.DEVICES_OF_CLASS) and not invocation.argv):
        return None
    if step.look is Look.DEVICES:
        return invocation.refined("--devices")
    if step.look is Look.ONE_DEVICE:
        return invocation.refined("--trace", step.name, others=step.name.split("/"))
    if step.look in _COMMANDS:
        return kubectl(*_COMMANDS[step.look].split())
    return _about_object(step)


def _about_object(step: NextStep) -> CommandLine | None:
    name, space = step.name, step.namespace
    if step.look is Look.SLICES:
        chosen = ("--field-selector", f"{step.kind}={name}") if name else ()
        return kubectl("get", "resourceslices", *chosen, others=(name,) if name else ())
    if step.look is Look.POD:
        return kubectl("describe", kind="pod", name=name, namespace=space)
    if step.look is Look.PODS_ON_NODE:
        return kubectl("get", "pods", "-A", "--field-selector", f"spec.nodeName={name}", others=(name,))
    if step.look in (Look.VOLUME_CLAIMS, Look.QUOTAS):
        words = ("get", "persistentvolumeclaims") if step.look is Look.VOLUME_CLAIMS else ("describe", "resourcequota")
        return kubectl(*words, namespace=space)
    if step.look is Look.ONE_NODE:
        return kubectl("describe", kind="node", name=name)
    if step.look is Look.PERMISSION:
        return kubectl("auth", "can-i", "list", step.kind)
    if step.look in (Look.LOG, Look.LOG_BEFORE):
        before = ("--previous",) if step.look is Look.LOG_BEFORE else ()
        more = ("-c", step.kind, *before) if step.kind else before
        others = (step.kind,) if step.kind else ()
        return kubectl("logs", kind="pod", name=name, namespace=space, more=more, others=others)
    if step.look is Look.DAEMON_SET:
        return kubectl("describe", kind=step.kind, name=name, namespace=space)
    if step.look in _EXPLAINED:
        kind = _EXPLAINED[step.look]
        return kubectl("dra", "explain", kind=kind, name=name, namespace=space)
    if step.look is Look.DEVICES_OF_CLASS:
        own = ("--class", name) if name else ()
        return kubectl("dra", "devices", *own, "-o", "wide", others=own[1:])
    if step.look is Look.AS_WRITTEN:
        if not name:
            return kubectl("get", step.kind, namespace=space, more=("-o", "yaml"))
        return kubectl("get", kind=step.kind, name=name, namespace=space, more=("-o", "yaml"))
    return None


_SCALED = ("Deployment", "ReplicaSet", "StatefulSet")


_COST = "controller.kubernetes.io/pod-deletion-cost=-1000"


_SUSPEND = '{"spec":{"suspend":true}}'


def making(changes: Sequence[object]) -> tuple[CommandLine, ...]:
    """The commands that make changes, in their order; none where it takes several changes, or an edit."""
    if len(changes) == 1 and isinstance(changes[0], FewerReplicas):
        return _of_fewer(changes[0].owner, changes[0].replicas, changes[0].ended)
    if len(changes) != 1 or not isinstance(changes[0], Free) or len(changes[0].holders) != 1:
        return ()
    (holder,) = changes[0].holders
    space, claim = holder.claim.metadata.namespace, holder.claim.metadata.name
    users = [user.name for user in holder.claim.reserved_for]
    if holder.standing is HolderState.ENDED:
        # It renews its lease every few seconds; where it does not, nothing is released.
        return (kubectl("get", kind="lease", name="kube-controller-manager", namespace="kube-system"),)
    if holder.standing is HolderState.UNUSED:
        return (deleting("resourceclaim", claim, space),)
    if holder.standing is HolderState.FOREIGN:
        return (kubectl("get", kind="resourceclaim", name=claim, namespace=space, more=("-o", "yaml")),)
    if holder.standing is HolderState.ENDING:
        return tuple(kubectl("dra", "explain", kind="pod", name=user, namespace=space) for user in users)
    if holder.owner is None:
        return tuple(deleting("pod", user, space) for user in users)
    return _without_successor(holder, holder.owner, space) if len(users) == 1 else ()


Fix: TypeAlias = Finding | RemedyPlan
"""What helps: what ends a cause, or changes beside that."""


def fixes(diagnosis: Diagnosis) -> list[Fix]:
    """What ends the first cause or helps instead of that, and whatever is proved, in the order in which all outputs
    have them: what is only tried before what changes the cluster, of these the mildest first, and more hardware last.
    """
    first = first_with_fix(diagnosis)
    found: list[Fix] = [
        finding
        for finding in diagnosis.findings
        if finding is first or (_has_fix(finding) and (finding.proof is not None or finding.kind.instead))
    ]
    found += diagnosis.ways
    # Where one change is the fix of several requests, the last proof has it for all of them.
    last = {offered: each for each in found if (offered := changes_of(each))}
    found = [each for each in found if last.get(changes_of(each), each) is each]
    joint = [each for each in found if is_joint(each.proof)]

    def place(each: Fix) -> tuple[bool, bool, Price]:
        alike = joint if is_joint(each.proof) else [each]
        price = max(map(price_of, alike))
        return price is Price.BUY, any(map(_changes_cluster, alike)), price

    return sorted(found, key=place)


def first_with_fix(diagnosis: Diagnosis) -> Finding | None:
    """The first cause that one change ends."""
    return next(filter(_has_fix, diagnosis.findings), None)


def _has_fix(finding: Finding) -> bool:
    return finding.remedy is None or not finding.remedy.not_alone


def changes_of(fix: Fix) -> tuple[Change, ...]:
    """The changes of a fix: of a cause's the first that its remedy offers."""
    if isinstance(fix, RemedyPlan):
        return fix.changes
    return fix.remedy.offers[:1] if fix.remedy is not None else ()


def is_joint(proved: Proof | None) -> bool:
    """Whether it is the fix of one of several requests that all fail: it is none without those of the others."""
    beside = proved.beside if proved else None
    return beside is not None and bool(beside.changed or beside.aside)


def price_of(fix: Fix) -> Price:
    """What a fix asks of people."""
    remedy = fix.remedy if isinstance(fix, Finding) else fix
    return remedy.price if remedy is not None else Price.WAIT


def _changes_cluster(fix: Fix) -> bool:
    """Whether it ends a pod, or has a command that changes something."""
    own = fix.remedy.commands if isinstance(fix, Finding) and fix.remedy is not None else ()
    ends = price_of(fix) in (Price.END_IDLE, Price.END_RUNNING)
    return ends or any(command.effect.changes for command in (*making(changes_of(fix)), *own))


def why_not_made(changes: Sequence[object]) -> str:
    """Why no command makes a change that ends a pod; empty of other changes, and where one does."""
    free = changes[0] if len(changes) == 1 else None
    if not isinstance(free, Free) or len(free.holders) != 1 or making(changes):
        return ""
    (holder,) = free.holders
    if holder.owner is None or holder.standing not in (HolderState.RUNNING, HolderState.PENDING):
        return ""
    return f"No command ends it alone: {holder.owner} replaces a deleted pod. The answer without it:"


def _without_successor(holder: ClaimHolder, owner: Owner, space: str) -> tuple[CommandLine, ...]:
    """Ends the only pod of a claim so that its owner makes no other one; none where that would end another pod."""
    alike, ends = holder.alike, CommandEffect.DESTROYS
    if not alike:
        return ()
    (pod,) = holder.pods
    if owner.kind == "Job" and len(alike) == 1:
        more = ("--type=merge", "-p", _SUSPEND)
        return (kubectl("patch", kind="job", name=owner.name, namespace=space, more=more, effect=ends),)
    if owner.kind not in _SCALED:
        return ()
    fewer = (f"--replicas={len(alike) - 1}",)
    scale = kubectl("scale", kind=owner.kind.lower(), name=owner.name, namespace=space, more=fewer, effect=ends)
    if len(alike) == 1:
        return (scale,)
    if owner.kind == STATEFUL:
        # The pod with the highest number goes first; one that does not run keeps it from that.
        runs = all(other.phase == "Running" for other in alike)
        ordered = by_number(alike)
        if not ordered or ordered[-1] is not pod:
            return ()
        return (scale,) if runs else _of_fewer(owner, len(alike) - 1, (pod,))
    # Pods that do not run go first, whatever their cost.
    if any(other.phase != "Running" for other in alike):
        return ()
    writes, name = CommandEffect.WRITES, pod.metadata.name
    return kubectl("annotate", kind="pod", name=name, namespace=space, more=(_COST,), effect=writes), scale


def _of_fewer(owner: Owner, replicas: int, ended: Sequence[Pod]) -> tuple[CommandLine, ...]:
    """Ends pods of a StatefulSet, which itself ends none while one with a lower number does not run."""
    space, ends, fewer = ended[0].metadata.namespace, CommandEffect.DESTROYS, (f"--replicas={replicas}",)
    scale = kubectl("scale", kind=owner.kind.lower(), name=owner.name, namespace=space, more=fewer, effect=ends)
    return scale, *(deleting("pod", pod.metadata.name, space, "--ignore-not-found") for pod in ended)


def supposing(what_if: Sequence[WhatIfChange], invocation: Invocation) -> CommandLine | None:
    """The command that shows the answer with these changes; None where they cannot be supposed."""
    if not what_if or not invocation.argv:
        return None
    names = [name for change in what_if for name in change.names]
    return invocation.refined(*(word for change in what_if for word in change.flag), others=names)
