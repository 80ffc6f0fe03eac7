"""A reason for which the API server refuses a new pod."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from msgspec import Struct


class AdmissionPlugin(Enum):
    """The API server's own admission plugins that can refuse a pod, by the names of its flags."""

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
    """The object that makes the API server refuse a pod, whether it exists or is missing."""

    kind: str
    name: str
    namespace: str = ""


class Refusal(Struct, frozen=True):
    """Base of all reasons: the plugin that refuses and the object because of which it does.

    ``words`` is the server's own text behind ``pods "NAME" is forbidden: ``, where that is how it begins.
    """

    concerned: Concerned

    @property
    def plugin(self) -> AdmissionPlugin:
        """The admission plugin."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """What the API server writes."""
        raise NotImplementedError


class FieldRefused(Refusal, frozen=True):
    """A field of the pod that the API server finds invalid: its path as the server writes it, and what is wrong."""

    field: str
    message: str

    @property
    def plugin(self) -> AdmissionPlugin:
        """The server's own check."""
        return AdmissionPlugin.VALIDATION

    @property
    def words(self) -> str:
        """The path and what is wrong there, in our words."""
        return f"{self.field}: {self.message}"
