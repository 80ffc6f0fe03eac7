"""Why the API server refuses a new pod."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar, NamedTuple

from msgspec import Struct


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
