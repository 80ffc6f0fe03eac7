"""The ValidatingAdmissionPolicy that first warns about and then refuses device plugins' resources, by namespace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from kubectl_dra.migrate.rollout.survey import LABEL, REFUSED

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
