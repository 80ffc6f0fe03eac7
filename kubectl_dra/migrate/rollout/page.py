"""The page of a rollout: its phases, the check after each, and the way back."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.releases import TARGET
from kubectl_dra.command import CURRENT, ClusterFlags, CommandEffect, CommandLine, kubectl
from kubectl_dra.migrate.rollout.survey import LABEL, REFUSED, Standing, Survey, Use
from kubectl_dra.migrate.vendors.model import KnownDriver, Resource
from kubectl_dra.text import some

# The data of a rollout plan, and the names of its files.

CLASSES: Final = "1-classes.yaml"
QUOTAS: Final = "2-quotas.yaml"
POLICY: Final = "3-policy.yaml"
README: Final = "README.md"


class Moving(NamedTuple):
    """A resource that moves: what it becomes, whether the cluster has the class, and where it is used."""

    resource: Resource
    installed: bool | None
    namespaces: tuple[str, ...]


class Rollout(NamedTuple):
    """The content of the plan. ``staying`` are resources that no claim replaces, with the reason; ``where`` is the
    cluster that its commands are for.
    """

    moving: tuple[Moving, ...]
    staying: tuple[tuple[str, str], ...]
    order: tuple[Standing, ...]
    survey: Survey
    quotas: tuple[dict[str, Any], ...]
    classes: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]
    live: bool
    drivers: tuple[KnownDriver, ...]
    where: ClusterFlags = CURRENT

    @property
    def names(self) -> list[str]:
        """The resources that pods should no longer request."""
        return [move.resource.name for move in self.moving]


# The ValidatingAdmissionPolicy that first warns about and then refuses device plugins' resources, by namespace.

NAME: Final = "kubectl-dra-device-plugins"
WARNED: Final = "warn"
_GROUP: Final = "admissionregistration.k8s.io"
# Templates are looked at so that whoever writes them hears of it; pods are where nothing gets past.
_RULES: Final = (
    ("", "v1", ("CREATE",), ("pods",)),
    ("apps", "v1", ("CREATE", "UPDATE"), ("deployments", "statefulsets", "daemonsets")),
    ("batch", "v1", ("CREATE", "UPDATE"), ("jobs", "cronjobs")),
)
# Fields differ by kind, so types are left to run time.
_SPEC: Final = (
    'request.kind.kind == "Pod" ? dyn({0}).spec : '
    'request.kind.kind == "CronJob" ? dyn({0}).spec.jobTemplate.spec.template.spec : '
    "dyn({0}).spec.template.spec"
)
_CONTAINERS: Final = "variables.{0}.containers + variables.{0}.?initContainers.orValue([])"
_ASKING: Final = (
    "variables.containers.filter(c, c.?resources.?limits.orValue({}).exists(name, name in variables.resources) || "
    "c.?resources.?requests.orValue({}).exists(name, name in variables.resources))"
)


def policy(resources: Sequence[str]) -> dict[str, Any]:
    """The policy: it checks pods when they are created, and workloads when their pod template changes."""
    rules = [
        {"apiGroups": [group], "apiVersions": [version], "operations": list(operations), "resources": list(names)}
        for group, version, operations, names in _RULES
    ]
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [
                {"name": "pods-change", "expression": f"oldObject == null || ({_unlike()})"},
            ],
            "variables": [
                {"name": "resources", "expression": json.dumps(list(resources))},
                {"name": "spec", "expression": _SPEC.format("object")},
                {"name": "containers", "expression": _CONTAINERS.format("spec")},
                {"name": "asking", "expression": _ASKING},
            ],
            "validations": [
                {
                    "expression": "variables.asking.size() == 0",
                    "messageExpression": (
                        '"container " + variables.asking.map(c, string(c.name)).join(", ") + '
                        '" asks a device plugin for " + variables.resources.join(" or ") + '
                        '", and pods of this namespace claim devices: see kubectl dra migrate"'
                    ),
                    "message": "pods of this namespace claim devices: see kubectl dra migrate",
                    "reason": "Forbidden",
                }
            ],
        },
    }


def _unlike() -> str:
    """CEL: an update changes the pods. Other updates, such as those of controllers, pass."""
    new, old = _SPEC.format("object"), _SPEC.format("oldObject")
    return f"({new}) != ({old})"


def bindings() -> list[dict[str, Any]]:
    """The effect of a namespace label's value: ``warn`` admits pods, ``refuse`` does not."""
    return [_binding(WARNED, ["Warn", "Audit"]), _binding(REFUSED, ["Deny"])]


def _binding(value: str, actions: Sequence[str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"{NAME}-{value}"},
        "spec": {
            "policyName": NAME,
            "validationActions": list(actions),
            "matchResources": {"namespaceSelector": {"matchLabels": {LABEL: value}}},
        },
    }


RECIPES: Final = (
    "- DaemonSet of your own: give it a nodeAffinity that leaves out nodes with a label, and the driver's a "
    "nodeSelector "
    "on that label.",
    "- GPU Operator: its ClusterPolicy and the DRA driver must not both own a node. "
    "`nvidia.com/gpu.deploy.device-plugin: "
    '"false"` as a node label takes the plugin off one node, `devicePlugin.enabled: false` off all of them.',
    # https://docs.cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra, as of November 2026
    '- GKE: create node pools with the label `gke-no-default-nvidia-gpu-device-plugin: "true"` and '
    "`gpu-driver-version=disabled`, and install the GPU driver yourself; the managed plugin cannot be taken off a node "
    "later. Autopilot and node auto-provisioning make no nodes for claims.",
    # https://docs.aws.amazon.com/eks/latest/userguide/device-management.html and
    # https://karpenter.sh/docs/tasks/dra/, as of November 2026
    "- EKS: managed node groups, self-managed nodes, or Karpenter 1.15 or later with `settings.enableDRA` (alpha). "
    "Auto Mode does not support claims.",
    "- AKS: node pools without the managed GPU plugin, and the taint of the pool as a toleration of the pods. Whether "
    "node auto-provisioning reads claims is not documented.",
)
"""How the device plugin leaves a node, by platform."""


_COMMANDS: Final = re.compile(
    r"(?:(?<=`)|(?<=^    ))kubectl (?!kustomize|dra migrate plan|dra migrate (?!\S+ --live|--live))[^`#\n]*(?=[`#\n])",
    re.MULTILINE,
)
"""The commands of the page that ask a cluster, each in backticks or on a line of its own, up to its comment."""


def page(plan: Rollout) -> str:
    """The README of the plan, as Markdown."""
    text = "\n".join(_lines(plan)).rstrip() + "\n"
    if plan.where.saved or not plan.where.flags:
        return text
    flags = shlex.join(plan.where.flags)
    return _COMMANDS.sub(lambda found: f"{found[0].rstrip()} {flags}{'  ' if found[0][-1].isspace() else ''}", text)


def _lines(plan: Rollout) -> Iterator[str]:
    yield "# From device plugins to claims"
    yield ""
    source = "the cluster" if plan.live else "the manifests alone (no cluster was read)"
    yield (
        f"Written by `kubectl dra migrate plan` from what {source} had, for Kubernetes {plan.survey.release}. "
        "Nothing has been applied. Review, then go phase by phase: each ends with a check, and each has a way back "
        "that leaves the phases before it as they are. Running pods are not disturbed before phase 4, and then only by "
        "the rollout of their own workload."
    )
    yield ""
    yield from _what(plan)
    yield from _drivers(plan)
    yield from _quotas(plan)
    yield from _warn(plan)
    yield from _namespaces(plan)
    yield from _refuse(plan)
    yield from _end(plan)


def _what(plan: Rollout) -> Iterator[str]:
    yield "## What moves"
    yield ""
    if plan.moving:
        yield "| resource | becomes a claim for class | driver | used in |"
        yield "|---|---|---|---|"
        for move in plan.moving:
            spaces = ", ".join(move.namespaces)
            yield f"| {move.resource.name} | {move.resource.device_class} | {move.resource.driver or '?'} | {spaces} |"
    else:
        yield "Nothing that is known here: no pod or workload asks for a resource that a claim can take over."
    yield ""
    if plan.staying:
        yield "What stays with its device plugin:"
        yield ""
        yield from (f"- {name}: {reason}" for name, reason in plan.staying)
        yield ""
    for note in plan.survey.notes:
        yield f"Not seen: {note}."
        yield ""


def _drivers(plan: Rollout) -> Iterator[str]:
    yield "## 1. Drivers and classes, on the first nodes"
    yield ""
    yield (
        "Install the driver on a few nodes, and there only after the device plugin is off: a device that both hand out "
        "goes to two pods. So per node: cordon it, let the pods that use the plugin end, keep the plugin's DaemonSet "
        "off it (by its nodeSelector or affinity), let the driver's DaemonSet on it, uncordon it."
    )
    yield ""
    for driver in plan.drivers:
        yield from (f"- {driver.name}: {note}" for note in driver.notes)
    yield ""
    yield "How a node changes sides depends on who runs its device plugin:"
    yield ""
    yield from RECIPES
    yield ""
    yield (
        "Labels such as nvidia.com/gpu.product come from feature discovery, which often goes with the plugin: what is "
        "left of them on a node no longer follows its devices, so select by attributes of the claim."
    )
    both = [clash for clash in plan.survey.clashes if clash.same]
    if both:
        yield ""
        yield "Solve first, because device plugin and driver hand out the same devices there already:"
        yield ""
        yield from (
            f"- node {clash.node}: {clash.amount} {clash.resource} of the device plugin, and {len(clash.same)} such "
            f"devices of {clash.driver}"
            for clash in both
        )
    yield ""
    if plan.classes:
        yield "Where the driver's chart does not bring the DeviceClasses: `kubectl apply -f 1-classes.yaml`."
    elif plan.moving:
        yield "The cluster has the DeviceClasses."
    if plan.missing:
        yield ""
        yield f"Not written, because their selectors are not known here: {', '.join(plan.missing)}."
    yield ""
    yield "Check:"
    yield ""
    yield "    kubectl dra devices                 # each new node's devices are there, and free"
    yield "    kubectl dra migrate --live -A       # no node with the same devices twice"
    yield ""
    yield (
        "Back: take the driver's DaemonSet off the node (its ResourceSlices go with it), let the device plugin on it "
        "again, and `kubectl delete -f 1-classes.yaml` if you applied it."
    )
    yield ""


def _quotas(plan: Rollout) -> Iterator[str]:
    yield "## 2. Quotas for claims"
    yield ""
    if plan.quotas:
        yield (
            "Quotas of device plugins do not count claims. `kubectl apply -f 2-quotas.yaml` gives each namespace the "
            "same number of claimed devices, in a quota of its own; the old ones stay. Until the namespace has moved "
            "it can have up to both numbers together: lower one while you raise the other, if that is too much."
        )
        yield ""
        for quota in plan.quotas:
            hard = ", ".join(f"{key}={value}" for key, value in quota["spec"]["hard"].items())
            yield f"- {quota['metadata']['namespace']}: {hard}"
        yield ""
        yield (
            "In phase 4 migrate adds the same key to a quota that is among the manifests; the one of this phase can "
            "then go."
        )
        yield ""
        yield "Check: `kubectl get resourcequota -A` shows each of them with what is used."
        yield ""
        yield "Back: `kubectl delete -f 2-quotas.yaml`."
    else:
        yield (
            "No quota that was read counts what moves, so there is none to write. Who wants one: the key is "
            "`CLASS.deviceclass.resource.k8s.io/devices`."
        )
    yield ""


def _warn(plan: Rollout) -> Iterator[str]:
    yield "## 3. Warn"
    yield ""
    if not plan.moving:
        yield "There is nothing to warn of."
        yield ""
        return
    yield (
        f"`kubectl apply -f 3-policy.yaml` changes nothing by itself. A namespace with the label `{LABEL}: {WARNED}` "
        "answers whoever makes a pod or workload that asks for "
        f"{', '.join(plan.names)} with a warning, and marks it in the audit log."
    )
    yield ""
    yield from _labels(plan, WARNED)
    yield "Check: a pod like those of today brings the warning, and is made nevertheless (nothing is, in a dry run):"
    yield ""
    space, name = _example(plan)
    flags = ("--image=none", "--dry-run=server", f"--overrides={_probe(name)}")
    yield _command(kubectl("run", "probe", namespace=space, more=flags, effect=CommandEffect.DRY_RUN))
    yield ""
    yield "Back: `kubectl delete -f 3-policy.yaml`."
    yield ""


def _command(line: CommandLine) -> str:
    return f"    # not a name: {line.misnamed}" if line.misnamed else f"    {line}"


def _example(plan: Rollout) -> tuple[str, str]:
    """A namespace (empty for the current one), and a resource used there that will move."""
    for progress in plan.order:
        for use in plan.survey.uses:
            if use.namespace == progress.namespace and use.resource in plan.names:
                return progress.namespace, use.resource
    return plan.order[0].namespace if plan.order else "", plan.names[0]


def _probe(name: str) -> str:
    container = {"name": "probe", "image": "none", "resources": {"limits": {name: "1"}}}
    return json.dumps({"spec": {"containers": [container]}}, separators=(",", ":"))


def _labels(plan: Rollout, value: str) -> Iterator[str]:
    spaces = [progress.namespace for progress in plan.order]
    if spaces:
        label = (f"{LABEL}={value}", "--overwrite")
        for space in spaces:
            line = kubectl("label", kind="namespace", name=space, more=label, effect=CommandEffect.WRITES)
            yield _command(line)
        yield ""


def _namespaces(plan: Rollout) -> Iterator[str]:
    yield "## 4. The namespaces, one after the other"
    yield ""
    yield (
        "In this order: what migrate can do by itself comes first, and of that what is smallest. Each needs nodes with "
        "the driver for the devices that it claims, so move nodes (phase 1) along with the namespaces."
    )
    yield ""
    for number, progress in enumerate(plan.order, 1):
        mine = [use for use in plan.survey.uses if use.namespace == progress.namespace]
        yield f"{number}. **{progress.namespace}** ({progress.state}): {_uses(mine)}"
        yield from (f"   - first: {reason}" for reason in progress.reasons)
        yield from (f"   - also: {todo}" for todo in progress.todo)
    yield ""
    yield "For each, with its manifests in DIR:"
    yield ""
    # The newest release is what migrate writes for without being asked; a cluster may be older.
    release = plan.survey.release
    flag = f" --kubernetes-version {release}" if release and release != str(TARGET) else ""
    for command, what in (
        (f"migrate DIR{flag}", "the plan, with what is refused and why"),
        ("migrate DIR --live", "where each pod would land, and on how many nodes"),
        (f"migrate DIR{flag} --diff", "to review"),
        (f"migrate DIR{flag} --write", "exit code 1: something is left to decide, see above"),
    ):
        yield f"    kubectl dra {command:<{20 + len(flag)}}  # {what}"
    yield "    kubectl diff -f DIR"
    yield "    kubectl apply -f DIR"
    yield ""
    yield (
        "Pods and Jobs that exist cannot be changed: delete them first, or let them end. Other workloads roll out anew."
    )
    yield ""
    yield "Check:"
    yield ""
    yield "    kubectl dra explain --all -n NAMESPACE           # no claim is pending"
    yield "    kubectl dra migrate --live -n NAMESPACE          # nothing uses a device plugin any more"
    yield ""
    yield (
        "Back: `kubectl dra migrate DIR --reverse --write` restores the requests of the device plugin from claims that "
        "migrate made (others are refused with the reason; tolerations that may be somebody's own stay, unless "
        "`--unsafe` is given). Then `kubectl apply -f DIR`, delete the claim templates that are left over, and move "
        "nodes back as in phase 1. The label must not be `refuse` by then. Manifests under version control: reverting "
        "the commit does the same."
    )
    yield ""


def _uses(mine: Sequence[Use]) -> str:
    parts = [
        f"{use.owner} ({use.each} {use.resource} each, pods: {use.pods}{f' of {use.wanted}' if use.wanted else ''})"
        for use in mine
    ]
    return some(parts, 8) or "nothing left"


def _refuse(plan: Rollout) -> Iterator[str]:
    yield "## 5. Refuse"
    yield ""
    if not plan.moving:
        yield "There is nothing to refuse."
        yield ""
        return
    yield "When a namespace has nothing left, close the door behind it:"
    yield ""
    yield from _labels(plan, REFUSED)
    yield "Check: the dry run of phase 3 is now answered with Forbidden."
    yield ""
    yield f"Back: `kubectl label namespace NAMESPACE {LABEL}={WARNED} --overwrite`, or `{LABEL}-` for no word at all."
    yield ""


def _end(plan: Rollout) -> Iterator[str]:
    yield "## 6. The end of the device plugin"
    yield ""
    yield (
        "When `kubectl dra migrate --live -A` finds no user in any namespace: move the last nodes, remove the device "
        "plugin, and take the old keys out of the quotas:"
    )
    yield ""
    yield from (f"- `requests.{name}`" for name in plan.names)
    yield ""
    yield (
        "Check: `kubectl get nodes -o yaml` has none of these resources under allocatable with a number above 0, and "
        "`kubectl dra devices` has the devices of all nodes."
    )
    yield ""
    yield (
        "Back: install the device plugin on nodes that the driver has left, and put the keys into the quotas again. "
        "Keep this directory, and the manifests' history, until you are sure."
    )
