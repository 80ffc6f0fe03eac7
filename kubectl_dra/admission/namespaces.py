"""NamespaceLifecycle: a new pod needs a namespace that exists and is not being deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.meta import ObjectMeta

_ALWAYS: Final = ("default", "kube-system", "kube-public")
"""Namespaces that every cluster has, because the plugin prevents their deletion."""


class NamespaceMissing(Refusal, frozen=True):
    """The pod's namespace does not exist."""

    @property
    def plugin(self) -> AdmissionPlugin:
        """NamespaceLifecycle."""
        return AdmissionPlugin.NAMESPACE_LIFECYCLE

    @property
    def words(self) -> str:
        """The whole text of the server, which answers 404."""
        return f'namespaces "{self.concerned.name}" not found'


class NamespaceEnding(Refusal, frozen=True):
    """The pod's namespace is being deleted."""

    @property
    def plugin(self) -> AdmissionPlugin:
        """NamespaceLifecycle."""
        return AdmissionPlugin.NAMESPACE_LIFECYCLE

    @property
    def words(self) -> str:
        """The text of the plugin."""
        return f"unable to create new content in namespace {self.concerned.name} because it is being terminated"


def refusal(name: str, namespaces: Mapping[str, ObjectMeta] | None) -> Refusal | None:
    """Why a pod is refused for its namespace; None if it is not, or namespaces were not read."""
    if namespaces is None:
        return None
    found = namespaces.get(name)
    if found is None:
        return None if name in _ALWAYS else NamespaceMissing(Concerned("Namespace", name))
    return NamespaceEnding(Concerned("Namespace", name)) if found.deletion_timestamp else None
