"""Strategies of workloads, as the API server of Kubernetes 1.36 answered to each of them (dryRun=All)."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.admission.server.verdict import check
from kubectl_dra.api.releases import parse_release

JSON = dict[str, Any]
FIELDS = {"Deployment": "strategy", "DaemonSet": "updateStrategy", "StatefulSet": "updateStrategy"}


def refused(kind: str, strategy: JSON | None) -> list[str]:
    """The fields that are invalid."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec: JSON = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    if strategy is not None:
        spec[FIELDS[kind]] = strategy
    metadata = {"name": "x", "namespace": "default"}
    verdict = check(
        {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}, release=parse_release("1.36")
    )
    assert verdict is not None
    return [violation.field for violation in verdict.violations]


def rolling(**fields: Any) -> JSON:
    return {"rollingUpdate": fields}


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("strategy", [None, {}, {"type": "RollingUpdate"}, rolling()])
def test_defaults_are_taken(kind: str, strategy: JSON | None) -> None:
    assert refused(kind, strategy) == []


@pytest.mark.parametrize(
    ("kind", "strategy", "field"),
    [
        ("Deployment", {"type": "Recreate"}, ""),
        ("Deployment", {"type": "Recreate", **rolling()}, "rollingUpdate"),
        ("Deployment", {"type": "Recreate", **rolling(maxSurge=1)}, "rollingUpdate"),
        ("Deployment", {"type": "Nope"}, "type"),
        ("Deployment", {"type": "OnDelete"}, "type"),
        ("Deployment", rolling(maxSurge=0, maxUnavailable=0), "rollingUpdate.maxUnavailable"),
        ("Deployment", rolling(maxSurge="0%", maxUnavailable=0), "rollingUpdate.maxUnavailable"),
        ("Deployment", rolling(maxSurge=0), ""),
        ("Deployment", rolling(maxUnavailable=0), ""),
        ("Deployment", rolling(maxSurge=-1, maxUnavailable=0), "rollingUpdate.maxSurge"),
        ("Deployment", rolling(maxUnavailable="101%"), "rollingUpdate.maxUnavailable"),
        ("Deployment", rolling(maxUnavailable="100%"), ""),
        ("Deployment", rolling(maxUnavailable="x"), "rollingUpdate.maxUnavailable"),
        ("Deployment", rolling(maxSurge="150%", maxUnavailable=0), ""),
        ("DaemonSet", {"type": "Recreate"}, "type"),
        ("DaemonSet", {"type": "OnDelete", **rolling(maxUnavailable=0)}, ""),
        ("DaemonSet", rolling(maxSurge=0, maxUnavailable=0), "rollingUpdate.maxUnavailable"),
        ("DaemonSet", rolling(maxUnavailable=0), "rollingUpdate.maxUnavailable"),
        ("DaemonSet", rolling(maxSurge=1), "rollingUpdate.maxSurge"),
        ("DaemonSet", rolling(maxSurge=1, maxUnavailable=0), ""),
        ("DaemonSet", rolling(maxSurge=1, maxUnavailable=1), "rollingUpdate.maxSurge"),
        ("DaemonSet", rolling(maxSurge=-1, maxUnavailable=0), "rollingUpdate.maxSurge"),
        ("DaemonSet", rolling(maxSurge="150%", maxUnavailable=0), "rollingUpdate.maxSurge"),
        ("StatefulSet", {"type": "Recreate"}, "type"),
        ("StatefulSet", {"type": "OnDelete"}, ""),
        ("StatefulSet", {"type": "OnDelete", **rolling(partition=1)}, "rollingUpdate"),
        ("StatefulSet", rolling(partition=-1), "rollingUpdate.partition"),
        ("StatefulSet", rolling(partition=1), ""),
    ],
)
def test_what_the_server_takes(kind: str, strategy: JSON, field: str) -> None:
    assert refused(kind, strategy) == ([f"spec.{FIELDS[kind]}.{field}"] if field else [])
