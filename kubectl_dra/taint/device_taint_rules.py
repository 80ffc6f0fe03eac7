"""The DeviceTaintRules of kubectl-dra: one per device and key, recognised by name, marked as its own."""

from __future__ import annotations

import hashlib
import re
from functools import cached_property
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.behaviour import RULES_UNSEEN
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.releases import GROUP, Release, first_release, gate_default, versions_of
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import DeviceTaintRule
from kubectl_dra.cluster.client import Answered, Client
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import NOT_SERVED, Snapshot
from kubectl_dra.errors import ClusterError, InputError
from kubectl_dra.safe_output import one_line
from kubectl_dra.taint.typed import TaintSpec

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
OURS: Final = "kubectl-dra"
DEVICE_LABEL: Final = "kubectl-dra/device"
REASON: Final = "kubectl-dra/reason"
TICKET: Final = "kubectl-dra/ticket"
EXPIRES: Final = "kubectl-dra/expires"
HARDWARE: Final = "kubectl-dra/hardware-id"
NEXT_EFFECT: Final = "kubectl-dra/next-effect"
NEXT_AT: Final = "kubectl-dra/next-effect-at"
CREATED: Final = "created"
CHANGED: Final = "changed"
UNCHANGED: Final = "unchanged"
REFUSED: Final = "refused"
"""What becomes of a rule: the outcomes of writing it, or of a plan to do so."""
RESOURCE: Final = f"devicetaintrule.{GROUP}"
RULES: Final = f"devicetaintrules.{GROUP}"


class DesiredRule(Struct, frozen=True, dict=True):
    """A rule in its intended final form: one taint on one device, and the facts recorded with it.

    ``expires`` is a time of the API. ``grace`` is the number of seconds between NoSchedule and NoExecute,
    None if the effect is immediate. ``question``: a second rule that only asks the server while the first one
    stays.
    """

    device: DeviceID
    taint: TaintSpec
    reason: str = ""
    ticket: str = ""
    expires: str = ""
    hardware: str = ""
    grace: float | None = None
    question: bool = False

    @cached_property
    def name(self) -> str:
        """The rule's name. It is a hash and used often, so it is cached."""
        name = rule_name(self.device, self.taint.key)
        return f"{name}-asked" if self.question else name


class RuleStage(Struct, frozen=True):
    """A rule on its way: the current effect, and ``next_effect`` from ``next_at`` on (empty: as soon as possible)."""

    effect: str
    next_effect: str = ""
    next_at: str = ""


def rule_name(device: DeviceID, key: str) -> str:
    """``DEVICE-HASH``: a DNS label of at most 74 characters, hashing driver, pool, device and taint key."""
    digest = hashlib.sha256("\0".join((*device, key)).encode()).hexdigest()[:10]
    return f"{device.device}-{digest}"


def content(desired: DesiredRule, stage: RuleStage, version: str) -> dict[str, Any]:
    """The rule to apply. It always names driver, pool and device, so it never selects anything else."""
    if not all(desired.device):
        raise InputError(
            f"a taint needs the device's driver, pool and name, and its ResourceSlice does not have all of them: "
            f"{'/'.join(part or '?' for part in desired.device)}"
        )
    annotations = {
        REASON: desired.reason,
        TICKET: desired.ticket,
        EXPIRES: desired.expires,
        HARDWARE: desired.hardware,
        NEXT_EFFECT: stage.next_effect,
        NEXT_AT: stage.next_at,
    }
    taint = {"key": desired.taint.key, "effect": stage.effect}
    if desired.taint.value:
        taint["value"] = desired.taint.value
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": desired.name,
            "labels": {MANAGED_BY: OURS, DEVICE_LABEL: desired.device.device},
            "annotations": {key: one_line(value) for key, value in annotations.items() if value},
        },
        "spec": {
            "deviceSelector": {
                "driver": desired.device.driver,
                "pool": desired.device.pool,
                "device": desired.device.device,
            },
            "taint": taint,
        },
    }


def is_ours(metadata: ObjectMeta) -> bool:
    """Whether kubectl-dra created the rule."""
    return metadata.labels.get(MANAGED_BY) == OURS


def only_device(rule: DeviceTaintRule) -> DeviceID | None:
    """The only device that a rule can select; None if it may select others or none."""
    if rule.selector is None or rule.unmodelled:
        return None
    driver, pool, device = rule.selector
    return DeviceID(driver, pool, device) if driver and pool and device else None


def stage_of(rule: DeviceTaintRule) -> RuleStage:
    """The current stage of a rule."""
    notes = rule.metadata.annotations
    return RuleStage(rule.taint.effect, notes.get(NEXT_EFFECT) or "", notes.get(NEXT_AT) or "")


class Decision(Struct, frozen=True):
    """What to do about a desired rule. ``action`` is create, change, keep or refuse; ``why`` explains the last two.

    ``stage`` is the rule's current stage (None if there is no rule), ``since`` when it got its effect. ``desired``
    includes what is already recorded. ``version`` is the resourceVersion to change. ``same_taint``: the rule has the
    desired taint; ``same_facts``: all but its stage is as desired. ``note`` says what part of the desired rule is
    not done without ``overwrite``.
    """

    action: str
    desired: DesiredRule
    stage: RuleStage | None = None
    version: str = ""
    why: str = ""
    same_taint: bool = False
    note: str = ""
    same_facts: bool = False
    since: str = ""


def decide(desired: DesiredRule, rule: DeviceTaintRule | None, *, overwrite: bool) -> Decision:
    """Compare the existing rule with the desired one.

    A rule on its way to the desired one is continued. One that says something else is refused without ``overwrite``;
    one that selects other devices is always refused.
    """
    if rule is None:
        return Decision("create", desired)
    version, since = rule.metadata.resource_version, rule.taint.time_added
    stage = stage_of(rule)
    if only_device(rule) != desired.device:
        return Decision("refuse", desired, stage, version, f"DeviceTaintRule {desired.name} selects something else")
    if rule.metadata.deletion_timestamp:
        return Decision("refuse", desired, stage, version, f"DeviceTaintRule {desired.name} is being deleted")
    annotations = rule.metadata.annotations
    known = replace(
        desired,
        reason=desired.reason or annotations.get(REASON, ""),
        ticket=desired.ticket or annotations.get(TICKET, ""),
        expires=annotations.get(EXPIRES) or desired.expires,
        hardware=desired.hardware or annotations.get(HARDWARE, ""),
    )
    differences = _differences(desired, rule, stage)
    if differences and not overwrite:
        why = f"it has {', '.join(differences)}; --overwrite replaces that"
        return Decision("refuse", known, stage, version, why)
    note = ""
    if overwrite:
        known = replace(known, expires=desired.expires or annotations.get(EXPIRES, ""))
    elif desired.expires and known.expires != desired.expires:
        # Said and not refused: a command that goes on after an interruption comes with a new time.
        note = f"it expires at {known.expires} as before; --overwrite makes that {desired.expires}"
    unmarked = not is_ours(rule.metadata)
    recorded = (annotations.get(REASON, ""), annotations.get(TICKET, ""), annotations.get(EXPIRES, ""))
    same_taint = (rule.taint.key, rule.taint.value, rule.taint.effect) == desired.taint
    as_recorded = recorded == (known.reason, known.ticket, known.expires)
    same_facts = as_recorded and annotations.get(HARDWARE, "") == known.hardware and not differences and not unmarked
    if same_facts and stage == RuleStage(desired.taint.effect):
        return Decision("keep", known, stage, version, "it is there already", same_taint, note, same_facts, since)
    if differences:
        # What it was on its way to is not what is wanted now.
        stage = RuleStage(stage.effect)
    return Decision("change", known, stage, version, "", same_taint, note, same_facts, since)


def _differences(desired: DesiredRule, rule: DeviceTaintRule, stage: RuleStage) -> list[str]:
    """Differences of the rule from the desired one, in words."""
    out: list[str] = []
    annotations = rule.metadata.annotations
    if not is_ours(rule.metadata):
        out.append("another maker than kubectl-dra")
    if (rule.taint.key, rule.taint.value) != (desired.taint.key, desired.taint.value):
        out.append(f"the taint {rule.taint}")
    elif desired.taint.effect not in (stage.effect, stage.next_effect) or (
        stage.next_effect and stage.next_effect != desired.taint.effect
    ):
        out.append(f"the effect {stage.effect}")
    for name, wanted in (("reason", desired.reason), ("ticket", desired.ticket)):
        recorded = annotations.get(REASON if name == "reason" else TICKET, "")
        if wanted and recorded and wanted != recorded:
            out.append(f'the {name} "{recorded}"')
    recorded = annotations.get(HARDWARE, "")
    if desired.hardware and recorded and desired.hardware != recorded:
        out.append(f"been made for other hardware ({recorded}; now {desired.hardware})")
    return out


# Whether a cluster acts on DeviceTaintRules, and what to switch on if it does not.

KIND: Final = "DeviceTaintRule"
_FIRST: Final = first_release(KIND)
_GATES: Final = ("DRADeviceTaints", "DRADeviceTaintRules")
_METRIC = re.compile(r'^kubernetes_feature_enabled\{name="(DRADeviceTaint(?:s|Rules))"[^}]*\} ([01])', re.MULTILINE)


class Serving(NamedTuple):
    """The API version to use, the release, and whether the gates are known to be on."""

    version: str
    release: Release | None
    gates_known: bool


def require_rules(cluster: ApiServer) -> Serving:
    """Find the newest version in which DeviceTaintRules are served.

    Raises ClusterError: they are not served, or their feature gate is off; says what to switch on.
    """
    release = cluster.release()
    version = cluster.dra_versions().get(KIND)
    if version is None:
        raise ClusterError(f"{cluster.server} does not serve {RULES}: {how_to_turn_on(release)}")
    gates = gates_of(cluster.client)
    off = [gate for gate in _GATES if gates.get(gate) is False]
    if off:
        raise ClusterError(
            f"{cluster.server} serves {RULES}/{version}, but nothing acts on them with feature gate "
            f"{' and '.join(off)} off: {how_to_turn_on(release)}"
        )
    return Serving(version, release, bool(gates))


def how_to_turn_on(release: Release | None) -> str:
    """What an administrator of that release must set so that DeviceTaintRules are served and take effect."""
    if release is None:
        return "the server does not say its release; Kubernetes 1.37 serves them, 1.33 to 1.36 when asked to"
    if not versions_of(KIND, release):
        return f"Kubernetes {release} does not have them; {_FIRST} is the first that does, 1.37 serves them always"
    version = versions_of(KIND, release)[0]
    gates = [gate for gate in _GATES if gate_default(gate, release) is False]
    if not gates and version == "v1":
        return (
            f"Kubernetes {release} does by default; see --runtime-config of kube-apiserver and --feature-gates of "
            "kube-apiserver, kube-scheduler and kube-controller-manager"
        )
    flags = ",".join(f"{gate}=true" for gate in gates)
    return (
        f"on Kubernetes {release} start kube-apiserver with --runtime-config={GROUP}/{version}=true, and "
        f"kube-apiserver, kube-scheduler and kube-controller-manager with --feature-gates={flags}"
    )


def what_rules_need(release: Release | None) -> str:
    """The same in one line, for whom no server has refused yet."""
    versions = versions_of(KIND, release) if release is not None else ()
    gates = [gate for gate in _GATES if gate_default(gate, release) is False] if release is not None else []
    if not versions or not gates:
        return f"for the taint to work: {how_to_turn_on(release)}"
    named = f"gate{'s' if gates[1:] else ''} {' and '.join(gates)}"
    return f"in {release} rules need {versions[0]} and {named} (off by default)"


def version_assumed(release: Release) -> str:
    """The newest version in which a release can serve rules; for one that has none, the first that ever did."""
    return (versions_of(KIND, release) or versions_of(KIND, _FIRST))[0]


def gates_of(client: Client) -> dict[str, bool]:
    """The gates for taints according to the API server's metrics; empty if these may not be read."""
    try:
        text = client.text("/metrics")
    except (Answered, ClusterError):
        return {}
    return {name: value == "1" for name, value in _METRIC.findall(text)}


def undetermined(serving: Serving) -> str:
    """A note if it is invisible whether anything acts on rules; empty if it is visible or the default."""
    release = serving.release
    if serving.gates_known or (release is not None and all(gate_default(gate, release) for gate in _GATES)):
        return ""
    gate = next((name for name in _GATES if release is None or gate_default(name, release) is False), _GATES[1])
    return (
        f"undetermined whether anything acts on the rule: feature gate {gate} cannot be seen without the right to "
        "get /metrics, and it is off by default; a status of the rule after some seconds shows that it is on"
    )


def served_in(snapshot: Snapshot, release: Release) -> bool | None:
    """Whether the cluster of saved objects serves rules; None: they do not show it, and by default it does not."""
    if snapshot.rule_version:
        return True
    gap = snapshot.missing(KIND)
    if gap is not None and gap.reason == NOT_SERVED:
        return False
    return all(gate_default(gate, release) for gate in _GATES) or None


def rules_unseen(snapshot: Snapshot) -> bool | None:
    """Whether the cluster's scheduler ignores DeviceTaintRules and may crash on them; None if its patch release is
    unknown: a kubelet's says nothing of it.
    """
    release = snapshot.release
    return False if release is None else RULES_UNSEEN.affects(release, snapshot.server_patch)


def blind_scheduler(snapshot: Snapshot) -> str:
    """A warning if the cluster's scheduler ignores rules, or may be one that does; otherwise empty."""
    unseen, release = rules_unseen(snapshot), snapshot.release
    if unseen is False or release is None:
        return ""
    who = f"kube-scheduler {release}.{release.patch} does not see"
    if unseen is None:
        who = f"kube-scheduler {RULES_UNSEEN.patches(release.minor)}, of which this may be one, does not see"
    fixed = RULES_UNSEEN.fixed_in(release.minor)
    return f"{who} rules, and may crash ({RULES_UNSEEN.reference}, fixed in {fixed}); eviction works"
