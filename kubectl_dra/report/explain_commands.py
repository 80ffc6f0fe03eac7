"""The commands of a diagnosis: what to look at next, what makes a change, and what would show the answer with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from kubectl_dra.api.pods import MAKES_AGAIN, owner_of
from kubectl_dra.command import (
    CURRENT,
    Argv,
    ClusterFlags,
    CommandEffect,
    CommandLine,
    deleting,
    deleting_all,
    kubectl,
    misnamed,
    pods_on_node,
    uncordon,
)
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.diagnosis import Diagnosis, Finding, RemedyPlan
from kubectl_dra.explain.holders import ClaimHolder, HolderState
from kubectl_dra.explain.node_reasons import NodeCordoned
from kubectl_dra.explain.question.what_if_flag import WhatIfChange, parse
from kubectl_dra.explain.remedies.change import RequestChange
from kubectl_dra.explain.remedies.ending_pods import SUSPENDED, EndPods, FewerReplicas
from kubectl_dra.explain.remedies.freeing_claims import USED, Free
from kubectl_dra.explain.remedies.node_rules import RelaxNodeRule
from kubectl_dra.explain.remedies.proof_result import Price, Proof
from kubectl_dra.explain.remedies.prove import Change


class Invocation(NamedTuple):
    """The question as it was asked, to be repeated in what to do next.

    ``argv`` is the command line up to what only refines the output, empty where the question was another one;
    ``where`` has those of its flags that choose the cluster or the snapshot. With ``several`` more than one was asked
    about, and ``argv`` names none of them. ``files`` are the manifests that were asked about. With ``counted`` the
    answer is about one of several pods of a workload, the first that does not fit: with a change of the cluster all are
    counted again, and with one of a request only if they are ``alike``. ``request`` is the only one that the answer is
    about.
    """

    argv: Argv = ()
    where: ClusterFlags = CURRENT
    several: bool = False
    files: Argv = ()
    counted: bool = False
    alike: bool = False
    request: str = ""

    def about(self, diagnosis: Diagnosis) -> Invocation:
        """The question about one of those that were asked about."""
        requests = {funnel.request for claim in diagnosis.claims for funnel in claim.funnels}
        asked = self._replace(request=requests.pop() if len(requests) == 1 else "")
        if not self.several:
            return asked
        kind = "template" if diagnosis.of_template else diagnosis.kind
        subject = (f"{kind}/{diagnosis.name}", *(("-n", diagnosis.namespace) if diagnosis.namespace else ()))
        return asked._replace(argv=(*self.argv[:3], *subject, *self.argv[3:]), several=False)

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
    Look.DAEMON_SETS: "get daemonsets -A",
    Look.DRIVERS: "dra drivers",
}
"""Commands without a name."""


_EXPLAINED: Final = {
    Look.EXPLAIN_POD: "pod",
    Look.EXPLAIN_NODE: "node",
    Look.EXPLAIN_CLASS: "class",
    Look.CLAIM_HOLDER: "claim",
}


def command(step: NextStep | None, invocation: Invocation) -> CommandLine | None:
    """The command that shows what to look at next; None where there is none."""
    if step is None or (step.look in (Look.DEVICES, Look.ONE_DEVICE, Look.DEVICES_OF_CLASS) and not invocation.argv):
        return None
    if invocation.counted and step.look in (Look.DEVICES, Look.ONE_DEVICE):
        return None
    if step.look is Look.DEVICES:
        return invocation.refined("--devices")
    if step.look is Look.ONE_DEVICE:
        return invocation.refined("--trace", step.name, others=step.name.split("/"))
    if step.look is Look.LINT:
        return _lint(invocation)
    if step.look is Look.SHARE:
        return _share(invocation)
    if step.look is Look.COMPLETE and invocation.argv:
        return invocation.refined("--complete")
    if step.look in (Look.SNAPSHOT, Look.COMPLETE):
        return _snapshot(invocation)
    if step.look in _COMMANDS:
        return kubectl(*_COMMANDS[step.look].split())
    return _about_object(step)


def _lint(invocation: Invocation) -> CommandLine | None:
    """What says of a manifest's fields what they must be; None where no file was asked about."""
    files = tuple(file for file in invocation.files if file != "-")
    return CommandLine(("kubectl", "dra", "lint", *files), placed=True) if files else None


def _share(invocation: Invocation) -> CommandLine | None:
    """What says how the pods of a manifest can share devices; None of several files, of which it takes one."""
    if len(invocation.files) != 1 or invocation.files == ("-",):
        return None
    at = invocation.argv.index("-n") if "-n" in invocation.argv else len(invocation.argv)
    return CommandLine(("kubectl", "dra", "share", "-f", *invocation.files, *invocation.argv[at : at + 2]))


def _snapshot(invocation: Invocation) -> CommandLine:
    """What saves all that decides, in another file than that which was asked about."""
    file = next(name for name in ("cluster.yaml", "cluster-all.yaml", "all.yaml") if name not in invocation.where.flags)
    return kubectl("dra", "snapshot", "-o", file)


def _about_object(step: NextStep) -> CommandLine | None:
    name, space = step.name, step.namespace
    if step.look is Look.SLICES:
        chosen = ("--field-selector", f"{step.kind}={name}") if name else ()
        return kubectl("get", "resourceslices", *chosen, others=(name,) if name else ())
    if step.look is Look.POD:
        return kubectl("describe", kind="pod", name=name, namespace=space)
    if step.look is Look.END_POD:
        return deleting_all("pod", (name, *step.others), space)
    if step.look is Look.PODS_ON_NODE:
        return pods_on_node(name)
    if step.look in (Look.VOLUME_CLAIMS, Look.QUOTAS):
        words = ("get", "persistentvolumeclaims") if step.look is Look.VOLUME_CLAIMS else ("describe", "resourcequota")
        return kubectl(*words, namespace=space)
    if step.look is Look.ONE_NODE:
        return kubectl("describe", kind="node", name=name)
    if step.look is Look.ONE_LABEL_OF_NODES:
        return kubectl("get", "nodes", "-L", name, others=tuple(name.split("/")))
    if step.look is Look.PERMISSION:
        return kubectl("auth", "can-i", "list", step.kind)
    if step.look is Look.DAEMON_SET:
        return kubectl("describe", kind=step.kind, name=name, namespace=space)
    if step.look is Look.EXPLAIN_DRIVER:
        on = ("--node", step.kind) if step.kind else ()
        return kubectl("dra", "explain", kind="driver", name=name, more=on, others=on[1:])
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
    return step.log


_COST = "controller.kubernetes.io/pod-deletion-cost=-1000"


_SUSPEND = '{"spec":{"suspend":true}}'


def making(changes: Sequence[object]) -> tuple[CommandLine, ...]:
    """The commands that make changes, in their order; none where it takes several changes, or an edit."""
    (change,) = changes if len(changes) == 1 else (None,)
    if isinstance(change, EndPods):
        if change.fewer is not None:
            return _with_fewer(change.fewer)
        if change.ending or any(owner_of(pod) is not None for pod in change.ended):
            return ()
        return tuple(deleting("pod", pod.metadata.name, pod.metadata.namespace) for pod in change.ended)
    if isinstance(change, RelaxNodeRule) and isinstance(change.reason, NodeCordoned):
        return tuple(map(uncordon, change.nodes))
    if not isinstance(change, Free) or not change.by_command:
        return ()
    own = map(_of_holder, change.beside(change.fewer))
    return tuple(command for commands in (*map(_with_fewer, change.fewer), *own) for command in commands)


def _of_holder(holder: ClaimHolder) -> tuple[CommandLine, ...]:
    """What to do about a claim whose pods nothing makes again."""
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
    return tuple(deleting("pod", user, space) for user in users)


Fix: TypeAlias = Finding | RemedyPlan
"""What helps: what ends a cause, or changes beside that."""


def fixes(diagnosis: Diagnosis) -> list[Fix]:
    """The fixes in the order in which all outputs have them: what has a command that changes the cluster comes after
    what is only tried, and the mildest of both first.
    """
    found = by_price(diagnosis)
    joint = any(_changes_cluster(solution) for solution in found if is_joint(solution.proof))
    return sorted(found, key=lambda solution: joint if is_joint(solution.proof) else _changes_cluster(solution))


def by_price(diagnosis: Diagnosis) -> list[Fix]:
    """What ends the first cause or helps instead of that, and whatever is proved, the mildest first."""
    first = first_with_fix(diagnosis)
    found: list[Fix] = [
        finding
        for finding in diagnosis.findings
        if finding is first or (_has_fix(finding) and (finding.proof is not None or finding.kind.instead))
    ]
    found += diagnosis.ways
    # Where one change is the fix of several requests, the last proof has it for all of them.
    last = {offered: solution for solution in found if (offered := changes_of(solution))}
    found = [solution for solution in found if last.get(changes_of(solution), solution) is solution]
    joint = max((_price(solution) for solution in found if is_joint(solution.proof)), default=Price.NOTHING)
    found.sort(key=lambda solution: _elsewhere(solution, diagnosis))
    return sorted(found, key=lambda solution: joint if is_joint(solution.proof) else _price(solution))


def _elsewhere(fix: Fix, diagnosis: Diagnosis) -> bool:
    """Whether a fix changes another alternative of a request than the one that the answer names."""
    named = diagnosis.findings[0].request if diagnosis.findings else ""
    changed = {change.place.name for change in changes_of(fix) if isinstance(change, RequestChange)}
    return "/" in named and any(name != named and name.split("/")[0] == named.split("/")[0] for name in changed)


def first_with_fix(diagnosis: Diagnosis) -> Finding | None:
    """The first cause that one change ends."""
    return next(filter(_has_fix, diagnosis.findings), None)


def _has_fix(finding: Finding) -> bool:
    return finding.remedy is None or not finding.remedy.not_alone


def changes_of(fix: Fix) -> tuple[Change, ...]:
    """The changes of a fix: of a cause's the first that its remedy offers."""
    if isinstance(fix, RemedyPlan):
        return fix.changes
    return fix.remedy.made if fix.remedy is not None else ()


def is_joint(proved: Proof | None) -> bool:
    """Whether it is the fix of one of several requests that all fail: it is none without those of the others."""
    beside = proved.beside if proved else None
    return beside is not None and bool(beside.changed or beside.aside)


def _price(fix: Fix) -> Price:
    remedy = fix.remedy if isinstance(fix, Finding) else fix
    return remedy.price if remedy is not None else Price.WAIT


def _changes_cluster(fix: Fix) -> bool:
    own = fix.remedy.commands if isinstance(fix, Finding) and fix.remedy is not None else ()
    return any(command.effect.changes for command in (*making(changes_of(fix)), *own))


def why_not_made(changes: Sequence[object]) -> str:
    """Why no command makes a change that ends a pod; empty of other changes, and where one does."""
    free = changes[0] if len(changes) == 1 else None
    if not isinstance(free, Free) or free.by_command:
        return ""
    pods = (pod for holder in free.holders if holder.standing in USED for pod in holder.pods)
    owner = next(owner for pod in pods if (owner := owner_of(pod)) is not None and owner.kind not in MAKES_AGAIN)
    return f"No command does it: {owner} may replace a deleted pod. The answer without it:"


def _with_fewer(fewer: FewerReplicas) -> tuple[CommandLine, ...]:
    """Ends pods so that their owner makes no others."""
    owner, space, ends = fewer.owner, fewer.ended[0].metadata.namespace, CommandEffect.DESTROYS
    if owner.kind in SUSPENDED:
        suspend = ("--type=merge", "-p", _SUSPEND)
        return (kubectl("patch", kind=owner.kind.lower(), name=owner.name, namespace=space, more=suspend, effect=ends),)
    more = (f"--replicas={fewer.replicas}",)
    scale = kubectl("scale", kind=owner.kind.lower(), name=owner.name, namespace=space, more=more, effect=ends)
    if fewer.first:
        (pod,), writes = fewer.ended, CommandEffect.WRITES
        cost = kubectl("annotate", kind="pod", name=pod.metadata.name, namespace=space, more=(_COST,), effect=writes)
        return cost, scale
    left = fewer.ended if fewer.stays else ()
    return scale, *(deleting("pod", pod.metadata.name, space, "--ignore-not-found") for pod in left)


def supposing(what_if: Sequence[WhatIfChange], invocation: Invocation) -> CommandLine | None:
    """The command that shows the answer with these changes; None where they cannot be supposed."""
    if not what_if or not invocation.argv:
        return None
    if invocation.counted and not invocation.alike and not all(change.of_cluster for change in what_if):
        return None
    names = [name for change in what_if for name in change.names]
    asked = invocation._replace(argv=_without_overridden(invocation, what_if))
    return asked.refined(*(word for change in what_if for word in change.flag), others=names)


def _without_overridden(invocation: Invocation, what_if: Sequence[WhatIfChange]) -> Argv:
    """A command line without what it supposes of the same fields: the last change of a field would win."""
    words, only = invocation.argv, invocation.request
    fields = {change.field(only) for change in what_if} - {""}
    of_changes = {
        at for at, word in enumerate(words[:-1]) if word == "--what-if" and _field(words[at + 1], only) in fields
    }
    return tuple(word for at, word in enumerate(words) if at not in of_changes and at - 1 not in of_changes)


def _field(text: str, only: str) -> str:
    try:
        return parse(text).field(only)
    except UsageError:
        return ""
