"""The commands that make a change in the cluster, or that show what would be with it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kubectl_dra.explain.question.what_if_flag import Supposition
from kubectl_dra.explain.remedies.free import Free
from kubectl_dra.explain.scene.holders import ClaimHolder, HolderState
from kubectl_dra.report.blocks import Argv, CommandEffect, ShellCommand
from kubectl_dra.report.explain_words import Invocation

_SCALED = ("Deployment", "ReplicaSet", "StatefulSet")
_COST = "controller.kubernetes.io/pod-deletion-cost=-1000"
_SUSPEND = '{"spec":{"suspend":true}}'


def making(made: Sequence[object], asked: Invocation) -> ShellCommand | None:
    """The commands that make changes, in their order; None where it takes several changes, or an edit."""
    if len(made) != 1 or not isinstance(made[0], Free) or len(made[0].holders) != 1:
        return None
    (holder,) = made[0].holders
    where = () if asked.saved else tuple(shlex.split(asked.where))
    space, claim = ("-n", holder.claim.metadata.namespace), holder.claim.metadata.name
    if holder.standing is HolderState.ENDED:
        # It renews its lease every few seconds; where it does not, nothing is released.
        return _reads("get", "lease", "-n", "kube-system", "kube-controller-manager", *where)
    if holder.standing is HolderState.UNUSED:
        return _ends(("kubectl", "delete", "resourceclaim", *space, claim, *where))
    names = [user.name for user in holder.claim.reserved_for]
    if holder.standing is HolderState.FOREIGN:
        return _reads("get", "resourceclaim", *space, claim, "-o", "yaml", *where)
    if holder.standing is HolderState.ENDING:
        return _reads("describe", "pod", *space, *names, *where)
    if holder.owner is None:
        return _ends(("kubectl", "delete", "pod", *space, *names, *where))
    return _ends(*_without_successor(holder, space, where)) if len(names) == 1 else None


def _reads(*words: str) -> ShellCommand:
    return ShellCommand((("kubectl", *words),))


def _ends(*commands: Argv) -> ShellCommand | None:
    return ShellCommand(commands, CommandEffect.DESTROYS) if commands else None


def _without_successor(holder: ClaimHolder, space: Argv, where: Argv) -> tuple[Argv, ...]:
    """Ends the only pod of a claim so that its owner makes no other one; none where that would end another pod."""
    owner, alike = holder.owner, holder.alike
    if owner is None or not alike:
        return ()
    (pod,) = holder.pods
    if owner.kind == "Job" and len(alike) == 1:
        return (("kubectl", "patch", "job", *space, owner.name, "--type=merge", "-p", _SUSPEND, *where),)
    if owner.kind not in _SCALED:
        return ()
    scale = ("kubectl", "scale", owner.kind.lower(), *space, owner.name, f"--replicas={len(alike) - 1}", *where)
    if len(alike) == 1:
        return (scale,)
    if owner.kind == "StatefulSet":
        # The pod with the highest number goes first.
        last = max(alike, key=lambda other: _number(other.metadata.name))
        return (scale,) if last is pod else ()
    # Pods that do not run go first, whatever their cost.
    if any(other.phase != "Running" for other in alike):
        return ()
    return ("kubectl", "annotate", "pod", *space, pod.metadata.name, _COST, *where), scale


def _number(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else -1


def supposing(what_if: Sequence[Supposition], asked: Invocation) -> ShellCommand | None:
    """The command that shows the answer with these changes; None where they cannot be supposed."""
    if not what_if or not asked.command:
        return None
    changes = (word for change in what_if for word in ("--what-if", str(change)))
    return ShellCommand(((*shlex.split(asked.command), *changes),))
