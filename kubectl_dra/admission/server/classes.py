"""DeviceClass, and the names of extended resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.admission.server.configs import check_config
from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.equality import same_field
from kubectl_dra.admission.server.metadata import check_metadata
from kubectl_dra.admission.server.model import INVALID, Path, Violations, check_list, struct, violation
from kubectl_dra.admission.server.names import label_key_problems, subdomain_problems
from kubectl_dra.admission.server.selectors import check_selectors
from kubectl_dra.api.behaviour import CLAIM_PREFIX_READ
from kubectl_dra.api.fields import limit


def check_class(device_class: Mapping[str, Any], context: ServerContext) -> Violations:
    """A DeviceClass to be created."""
    yield from check_metadata(
        device_class.get("metadata"),
        subdomain_problems,
        namespaced=False,
        context=context,
        check_prefix=context.release not in CLAIM_PREFIX_READ,
    )
    spec = struct(device_class, "spec")
    stored = context.old is not None and same_field(spec, struct(context.old, "spec"), "DeviceClassSpec", "selectors")
    if not stored:
        yield from check_selectors(spec.get("selectors"), ("spec", "selectors"), "class-selectors-too-many", context)
    at: Path = ("spec", "config")
    most = limit("DeviceClassSpec", "config")

    def config(raw: Mapping[str, Any] | None, at: Path) -> Violations:
        return check_config(raw, at, context)

    yield from check_list(spec.get("config"), at, most, "class-config-too-many", config, release=context.release)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        message = (
            f"{name!r} must be domain/name, not under kubernetes.io/, not beginning with 'requests.', "
            "with a lower case domain of at most 244 characters"
        )
        yield violation(("spec", "extendedResourceName"), INVALID, "extended-resource-name", message)


def is_native_resource(name: str) -> bool:
    """Whether Kubernetes considers a resource name its own: no domain, or kubernetes.io anywhere in it."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended_resource(name: str) -> bool:
    """Whether a name is valid for an extended resource. With its prefix it must also be a valid quota key."""
    if is_native_resource(name) or name.startswith("requests."):
        return False
    return not label_key_problems(f"requests.{name}")
