"""Why the API server refuses a new pod, and the admission plugins that judge it by an object it names: its namespace,
PriorityClass, service account and RuntimeClass; and what the server adds to its affinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct, structs

from kubectl_dra.api.labels import Requirement
from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.api.nodes import PodAffinity, PodAffinityTerm, Toleration
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import PriorityClass, RuntimeClass


class AdmissionPlugin(Enum):
    """The API server's admission plugins that can refuse a pod, by the names that its flags use."""

    NAMESPACE_LIFECYCLE = "NamespaceLifecycle"
    LIMIT_RANGER = "LimitRanger"
    SERVICE_ACCOUNT = "ServiceAccount"
    POD_SECURITY = "PodSecurity"
    PRIORITY = "Priority"
    RUNTIME_CLASS = "RuntimeClass"
    RESOURCE_QUOTA = "ResourceQuota"
    VALIDATION = "validation"
    """No plugin: the server's own check of fields."""


class Concerned(NamedTuple):
    """The object, existing or missing, that makes the API server refuse a pod."""

    kind: str
    name: str
    namespace: str = ""


class Refusal(Struct, frozen=True):
    """Base of all reasons: the plugin that refuses, and the object that causes it.

    ``words`` is the server's text after ``pods "NAME" is forbidden: ``, if it begins like that.
    """

    concerned: Concerned
    plugin: ClassVar[AdmissionPlugin]

    @property
    def words(self) -> str:
        """What the API server writes."""
        raise NotImplementedError


class FieldRefused(Refusal, frozen=True):
    """A field of the pod that the API server finds invalid: its path as the server writes it, and the error."""

    field: str
    message: str

    plugin: ClassVar = AdmissionPlugin.VALIDATION

    @property
    def words(self) -> str:
        """The path and the error, in our words."""
        return f"{self.field}: {self.message}"


class VersionNotServed(FieldRefused, frozen=True):
    """No release that is modelled serves the version that a manifest names; ``instead`` is the one that they serve."""

    instead: str


# NamespaceLifecycle: a new pod needs a namespace that exists and is not being deleted.

_ALWAYS: Final = ("default", "kube-system", "kube-public")
"""Namespaces that every cluster has, because the plugin prevents their deletion."""


class NamespaceMissing(Refusal, frozen=True):
    """The pod's namespace does not exist."""

    plugin: ClassVar = AdmissionPlugin.NAMESPACE_LIFECYCLE

    @property
    def words(self) -> str:
        """The whole text of the server, which answers 404."""
        return f'namespaces "{self.concerned.name}" not found'


class NamespaceEnding(Refusal, frozen=True):
    """The pod's namespace is being deleted."""

    plugin: ClassVar = AdmissionPlugin.NAMESPACE_LIFECYCLE

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return f"unable to create new content in namespace {self.concerned.name} because it is being terminated"


def namespace_refusal(name: str, namespaces: Mapping[str, ObjectMeta] | None) -> Refusal | None:
    """Why a pod is refused for its namespace; None if it is not, or namespaces were not read."""
    if namespaces is None:
        return None
    metadata = namespaces.get(name)
    if metadata is None:
        return None if name in _ALWAYS else NamespaceMissing(Concerned("Namespace", name))
    return NamespaceEnding(Concerned("Namespace", name)) if metadata.deletion_timestamp else None


# What the API server adds to pod affinity: the pod's values of matchLabelKeys and mismatchLabelKeys (KEP-3633).


def with_label_keys(pod: Pod) -> Pod:
    """The pod as stored, with those keys in the label selectors of its terms; the scheduler reads only these."""
    affinity = pod.spec.affinity
    if affinity is None:
        return pod
    labels = pod.metadata.labels
    resolved = structs.replace(
        affinity,
        pod_affinity=_resolved(affinity.pod_affinity, labels),
        pod_anti_affinity=_resolved(affinity.pod_anti_affinity, labels),
    )
    return structs.replace(pod, spec=structs.replace(pod.spec, affinity=resolved))


def _resolved(affinity: PodAffinity, labels: Mapping[str, str]) -> PodAffinity:
    return PodAffinity(
        tuple(_term(term, labels) for term in affinity.required),
        tuple(structs.replace(preference, term=_term(preference.term, labels)) for preference in affinity.preferred),
    )


def _term(term: PodAffinityTerm, labels: Mapping[str, str]) -> PodAffinityTerm:
    selector = term.label_selector
    added = tuple(_requirements(term, labels))
    if selector is None or not added:
        return term
    expressions = (*selector.match_expressions, *added)
    return structs.replace(term, label_selector=structs.replace(selector, match_expressions=expressions))


def _requirements(term: PodAffinityTerm, labels: Mapping[str, str]) -> Iterator[Requirement]:
    """The requirements for keys that are labels of the pod; other keys are ignored."""
    for operator, keys in (("In", term.match_label_keys), ("NotIn", term.mismatch_label_keys)):
        for key in keys:
            if key in labels:
                yield Requirement(key, operator, (labels[key],))


# Priority: the integer behind a pod's priorityClassName.


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


def with_priority(pod: Pod, classes: Mapping[str, PriorityClass] | None) -> Pod | Refusal:
    """The pod with its priority and preemption policy, or why it is refused.

    ``classes`` None: not read, so only the system's own classes are known, and other priorities stay as
    written.
    """
    name = pod.spec.priority_class_name
    priority_class = _named(name, classes) if name else _default(classes)
    if priority_class is None and name:
        if classes is None:
            return pod
        return PriorityClassMissing(Concerned("PriorityClass", name))
    value = priority_class.value if priority_class else 0
    policy = (priority_class.preemption_policy if priority_class else "") or _PREEMPTS
    concerned = Concerned("PriorityClass", priority_class.metadata.name if priority_class else "")
    if pod.spec.priority is not None and pod.spec.priority != value:
        return PriorityContradicted(concerned, str(pod.spec.priority), str(value))
    if pod.spec.preemption_policy and pod.spec.preemption_policy != policy:
        return PriorityContradicted(concerned, pod.spec.preemption_policy, policy, policy=True)
    spec = structs.replace(
        pod.spec,
        priority=value,
        preemption_policy=policy,
        priority_class_name=priority_class.metadata.name if priority_class else name,
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
    defaults = [priority_class for priority_class in (classes or {}).values() if priority_class.global_default]
    return min(defaults, key=lambda priority_class: priority_class.value, default=None)


# ServiceAccount: the account of a pod must exist.

DEFAULT_ACCOUNT: Final = "default"
"""The account that comes with its namespace."""


class ServiceAccountMissing(Refusal, frozen=True):
    """The pod's service account does not exist."""

    plugin: ClassVar = AdmissionPlugin.SERVICE_ACCOUNT

    @property
    def words(self) -> str:
        """The text of the plugin."""
        name = self.concerned.name
        return f'error looking up service account {self.concerned.namespace}/{name}: serviceaccount "{name}" not found'


def account_refusal(pod: Pod, accounts: Set[str] | None) -> Refusal | None:
    """Why a pod is refused for its account; None if it exists, or accounts were not read."""
    name = pod.spec.service_account_name or DEFAULT_ACCOUNT
    if accounts is None or name in accounts:
        return None
    return ServiceAccountMissing(Concerned("ServiceAccount", name, pod.metadata.namespace))


# RuntimeClass: the overhead and placement rules of a pod's runtime.


class RuntimeMismatch(Enum):
    """Disagreement of a pod and its RuntimeClass; the value is the server's text."""

    OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    OVERHEAD_ALONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class RuntimeClassMissing(Refusal, frozen=True):
    """The pod names a RuntimeClass that does not exist."""

    plugin: ClassVar = AdmissionPlugin.RUNTIME_CLASS

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return f'pod rejected: RuntimeClass "{self.concerned.name}" not found'


class OverheadContradicted(Refusal, frozen=True):
    """The pod writes an overhead that differs from its RuntimeClass's."""

    mismatch: RuntimeMismatch

    plugin: ClassVar = AdmissionPlugin.RUNTIME_CLASS

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return self.mismatch.value


class RuntimeNodeSelectorConflict(Refusal, frozen=True):
    """The pod and its RuntimeClass require different values of one node label."""

    label: str
    wanted: str
    written: str

    plugin: ClassVar = AdmissionPlugin.RUNTIME_CLASS

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return (
            f"conflict: runtimeClass.scheduling.nodeSelector[{self.label}] = {self.wanted}; "
            f"pod.spec.nodeSelector[{self.label}] = {self.written}"
        )


def with_runtime(pod: Pod, classes: Mapping[str, RuntimeClass] | None) -> Pod | Refusal:
    """The pod with its RuntimeClass's overhead, node selector and tolerations, or why it is refused.

    ``classes`` None: not read, so a named class changes nothing here.
    """
    name = pod.spec.runtime_class_name
    if name and classes is None:
        return pod
    runtime_class = (classes or {}).get(name) if name else None
    concerned = Concerned("RuntimeClass", name)
    if name and runtime_class is None:
        return RuntimeClassMissing(concerned)
    written = amounts(pod.spec.overhead)
    fixed = runtime_class.overhead.pod_fixed if runtime_class and runtime_class.overhead else None
    if fixed is None:
        return (
            OverheadContradicted(concerned, RuntimeMismatch.OVERHEAD_ALONE) if written else _placed(pod, runtime_class)
        )
    if written and written != amounts(fixed):
        return OverheadContradicted(concerned, RuntimeMismatch.OVERHEAD)
    return _placed(structs.replace(pod, spec=structs.replace(pod.spec, overhead=fixed)), runtime_class)


def _placed(pod: Pod, runtime_class: RuntimeClass | None) -> Pod | Refusal:
    if runtime_class is None or runtime_class.scheduling is None:
        return pod
    selector = dict(pod.spec.node_selector)
    for label, value in runtime_class.scheduling.node_selector.items():
        if selector.setdefault(label, value) != value:
            concerned = Concerned("RuntimeClass", runtime_class.metadata.name)
            return RuntimeNodeSelectorConflict(concerned, label, value, selector[label])
    tolerations = merged([*pod.spec.tolerations, *runtime_class.scheduling.tolerations])
    return structs.replace(pod, spec=structs.replace(pod.spec, node_selector=selector, tolerations=tolerations))


def merged(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Tolerations without those that another one covers."""
    kept: list[Toleration] = []
    for index, toleration in enumerate(tolerations):
        if any(_covers(other, toleration) for other in kept):
            continue
        if not any(other != toleration and _covers(other, toleration) for other in tolerations[index + 1 :]):
            kept.append(toleration)
    return tuple(kept)


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect not in ("", narrow.effect):
        return False
    if (
        wide.effect == "NoExecute"
        and wide.toleration_seconds is not None
        and (narrow.toleration_seconds is None or narrow.toleration_seconds > wide.toleration_seconds)
    ):
        return False
    if wide.operator in ("", "Equal"):
        return narrow.operator in ("", "Equal") and wide.value == narrow.value
    return wide.operator == "Exists"
