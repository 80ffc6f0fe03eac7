"""Priority: the integer behind a pod's priorityClassName."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import ClassVar, Final

from msgspec import structs

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PriorityClass

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that every cluster has."""
_PREEMPTS = "PreemptLowerPriority"


class PriorityClassMissing(Refusal, frozen=True):
    """The pod names a PriorityClass that does not exist."""

    plugin: ClassVar = AdmissionPlugin.PRIORITY

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return f"no PriorityClass with name {self.concerned.name} was found"


class PriorityContradicted(Refusal, frozen=True):
    """The pod writes another number or preemption policy than its class."""

    written: str
    computed: str
    policy: bool = False

    plugin: ClassVar = AdmissionPlugin.PRIORITY

    @property
    def words(self) -> str:
        """The text of the plugin."""
        what = "string value of PreemptionPolicy" if self.policy else "integer value of priority"
        return (
            f"the {what} ({self.written}) must not be provided in pod spec; priority admission controller computed "
            f"{self.computed} from the given PriorityClass name"
        )


def resolve(pod: Pod, classes: Mapping[str, PriorityClass] | None) -> Pod | Refusal:
    """The pod with its priority and preemption policy, or why it is refused.

    ``classes`` None: not read, so only the system's own classes are known, and other priorities stay as
    written.
    """
    name = pod.spec.priority_class_name
    found = _named(name, classes) if name else _default(classes)
    if found is None and name:
        if classes is None:
            return pod
        return PriorityClassMissing(Concerned("PriorityClass", name))
    value = found.value if found else 0
    policy = (found.preemption_policy if found else "") or _PREEMPTS
    concerned = Concerned("PriorityClass", found.metadata.name if found else "")
    if pod.spec.priority is not None and pod.spec.priority != value:
        return PriorityContradicted(concerned, str(pod.spec.priority), str(value))
    if pod.spec.preemption_policy and pod.spec.preemption_policy != policy:
        return PriorityContradicted(concerned, pod.spec.preemption_policy, policy, policy=True)
    spec = structs.replace(
        pod.spec, priority=value, preemption_policy=policy, priority_class_name=found.metadata.name if found else name
    )
    return structs.replace(pod, spec=spec)


def _named(name: str, classes: Mapping[str, PriorityClass] | None) -> PriorityClass | None:
    if classes and name in classes:
        return classes[name]
    if name in SYSTEM_CLASSES:
        return PriorityClass(structs.replace(PriorityClass().metadata, name=name), SYSTEM_CLASSES[name])
    return None


def _default(classes: Mapping[str, PriorityClass] | None) -> PriorityClass | None:
    """The default class; of several, the one with the lowest value."""
    defaults = [each for each in (classes or {}).values() if each.global_default]
    return min(defaults, key=lambda each: each.value, default=None)


# ServiceAccount: the account of a pod must exist.

ALWAYS: Final = "default"
"""The account that comes with its namespace."""


class ServiceAccountMissing(Refusal, frozen=True):
    """The pod's service account does not exist."""

    plugin: ClassVar = AdmissionPlugin.SERVICE_ACCOUNT

    @property
    def words(self) -> str:
        """The text of the plugin."""
        name = self.concerned.name
        return f'error looking up service account {self.concerned.namespace}/{name}: serviceaccount "{name}" not found'


def refusal(pod: Pod, accounts: Set[str] | None) -> Refusal | None:
    """Why a pod is refused for its account; None if it exists, or accounts were not read."""
    name = pod.spec.service_account_name or ALWAYS
    if accounts is None or name in accounts:
        return None
    return ServiceAccountMissing(Concerned("ServiceAccount", name, pod.metadata.namespace))
