"""RuntimeClass: the overhead and placement rules of a pod's runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import ClassVar

from msgspec import structs

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.nodes import Toleration
from kubectl_dra.api.pod_resources import amounts
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.policy import RuntimeClass


class RuntimeMismatch(Enum):
    """How a pod and its RuntimeClass disagree; the value is the server's text."""

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


def resolve(pod: Pod, classes: Mapping[str, RuntimeClass] | None) -> Pod | Refusal:
    """The pod with its RuntimeClass's overhead, node selector and tolerations, or why it is refused.

    ``classes`` None: not read, so a named class changes nothing here.
    """
    name = pod.spec.runtime_class_name
    if name and classes is None:
        return pod
    found = (classes or {}).get(name) if name else None
    concerned = Concerned("RuntimeClass", name)
    if name and found is None:
        return RuntimeClassMissing(concerned)
    written = amounts(pod.spec.overhead)
    fixed = found.overhead.pod_fixed if found and found.overhead else None
    if fixed is None:
        return OverheadContradicted(concerned, RuntimeMismatch.OVERHEAD_ALONE) if written else _placed(pod, found)
    if written and written != amounts(fixed):
        return OverheadContradicted(concerned, RuntimeMismatch.OVERHEAD)
    return _placed(structs.replace(pod, spec=structs.replace(pod.spec, overhead=fixed)), found)


def _placed(pod: Pod, found: RuntimeClass | None) -> Pod | Refusal:
    if found is None or found.scheduling is None:
        return pod
    selector = dict(pod.spec.node_selector)
    for label, value in found.scheduling.node_selector.items():
        if selector.setdefault(label, value) != value:
            concerned = Concerned("RuntimeClass", found.metadata.name)
            return RuntimeNodeSelectorConflict(concerned, label, value, selector[label])
    tolerations = merged([*pod.spec.tolerations, *found.scheduling.tolerations])
    return structs.replace(pod, spec=structs.replace(pod.spec, node_selector=selector, tolerations=tolerations))


def merged(tolerations: Sequence[Toleration]) -> tuple[Toleration, ...]:
    """Tolerations without those that another one covers."""
    kept: list[Toleration] = []
    for index, each in enumerate(tolerations):
        if any(_covers(other, each) for other in kept):
            continue
        if not any(other != each and _covers(other, each) for other in tolerations[index + 1 :]):
            kept.append(each)
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
