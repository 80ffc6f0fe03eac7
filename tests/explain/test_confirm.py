"""The kubectl commands on the pages of causes: what they read exists, and kubectl knows their flags."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.explain.cause_kinds import CauseKind
from kubectl_dra.explain.causes.registry import all_kinds

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas" / "kubernetes" / "1.36"
VERBS = ("get", "describe", "logs", "auth", "create", "diff", "version")
FLAGS = {"-n", "-A", "-o", "-l", "-L", "-f", "--field-selector", "--show-labels", "--show-managed-fields", "--sort-by"}
FLAGS |= {"--raw", "--all-containers", "--previous", "--tail", "--dry-run", "--subresource", "--as"}
SELECTABLE = {
    "events": {"involvedObject.name", "reason"},
    "pods": {"spec.nodeName", "status.phase"},
    "resourceslices": {"spec.driver", "spec.nodeName"},
}
"""The fields by which the API server selects: others than metadata.name and metadata.namespace."""
RESOURCES = {
    "pod": "core_v1_Pod",
    "resourceclaim": "resource.k8s.io_v1_ResourceClaim",
    "resourceclaimtemplate": "resource.k8s.io_v1_ResourceClaimTemplate",
    "resourceslice": "resource.k8s.io_v1_ResourceSlice",
    "deviceclass": "resource.k8s.io_v1_DeviceClass",
    "devicetaintrule": "resource.k8s.io_v1beta2_DeviceTaintRule",
    "resourcequota": "core_v1_ResourceQuota",
}
"""Resources with the schema of their kind."""
OTHERS = {
    "node": (
        ".spec.unschedulable",
        ".spec.taints[*].key",
        ".status.allocatable",
        ".status.declaredFeatures",
        ".status.nodeInfo.kubeletVersion",
    ),
    "csinode": (".spec.drivers[*].allocatable.count",),
    "persistentvolume": (".spec.nodeAffinity",),
    "persistentvolumeclaim": (".spec.accessModes",),
    "podgroup": (".status.resourceClaimStatuses",),
    "namespace": (),
    "nodeclaim": (),
    "event": (),
    "daemonset": (),
    "storageclass": (),
    "volumeattachment": (),
    "configmap": (),
    # Of other layers: tests/neighbours/objects.yaml has their fields.
    "workload": (),
    "localqueue": (),
    "clusterqueue": (),
    "queue": (),
    "clusterrole": (),
    "job": (".spec.suspend", ".status.conditions"),
}
"""All other resources, with the fields that may be read of them."""
METADATA = {"name", "namespace", "uid", "labels", "annotations", "creationTimestamp", "deletionTimestamp", "finalizers"}
METADATA |= {"ownerReferences[*].uid", "ownerReferences[*].kind", "ownerReferences[*].name"}
NAMES = {"POD", "NAMESPACE", "CLAIM", "NODE", "CLASS", "DRIVER", "TEMPLATE", "SLICE", "VOLUMECLAIM", "VOLUME", "GROUP"}
NAMES |= {"JOB", "QUEUE", "MANIFEST", "SCHEDULER", "LABEL=VALUE", "DRIVERNAMESPACE", "DRIVERPOD"}
"""What a reader writes a name for."""
COMMANDS = sorted({check.command for kind in all_kinds() for check in kind.confirm})

each = pytest.mark.parametrize("command", COMMANDS)


@pytest.mark.parametrize("kind", all_kinds(), ids=[kind.code for kind in all_kinds()])
def test_every_cause_says_how_to_see_it_and_when_it_is_normal(kind: CauseKind) -> None:
    assert kind.confirm
    for text in (kind.normal, *(check.shows for check in kind.confirm)):
        assert text.endswith((".", "?", "…")), text
        assert text[0].isupper() or text[0] in "`…1234567890", text


@each
def test_commands_are_kubectl_with_flags_that_it_has(command: str) -> None:
    words = _words(command)
    assert words[0] == "kubectl"
    assert words[1] in VERBS
    for word in words[2:]:
        if word.startswith("-"):
            assert word.partition("=")[0] in FLAGS, word
    for word in re.findall(r"\b[A-Z]{3,}(?:=[A-Z]+)?\b", re.sub(r"'[^']*'", "", command)):
        assert word in NAMES | {"DRA"}, word


@each
def test_commands_read_fields_that_exist(command: str) -> None:
    words = _words(command)
    if words[1] != "get" or words[2] == "--raw":
        return
    resource = words[2].partition(".")[0]
    singular = next(name for name in (resource, resource[:-1], resource[:-2]) if name in {**RESOURCES, **OTHERS})
    for path in _paths(words):
        name = re.sub(r"\[[^]]*\]", "[*]", path)
        if name.startswith(".metadata."):
            assert name.removeprefix(".metadata.") in METADATA, path
        elif singular in OTHERS:
            assert name in OTHERS[singular], path
        else:
            assert _exists(_schema(RESOURCES[singular]), name), path
    for selector in [words[at + 1] for at, word in enumerate(words) if word == "--field-selector"]:
        assert {part.partition("=")[0] for part in selector.split(",")} <= SELECTABLE[resource]


def test_a_field_that_is_misspelt_is_noticed() -> None:
    schema = _schema(RESOURCES["resourceclaim"])
    assert _exists(schema, ".status.allocation.devices.results[*].device")
    assert not _exists(schema, ".status.allocation.devices.result[*].device")
    assert not _exists(schema, ".spec.devices.requests[*].deviceClassName")


def _words(command: str) -> list[str]:
    return shlex.split(command.partition(" | grep ")[0])


def _paths(words: list[str]) -> Iterator[str]:
    """The fields that the output of a command shows."""
    for word in words:
        if word.startswith("custom-columns="):
            yield from (column.partition(":")[2] for column in word.partition("=")[2].split(","))
        elif word.startswith("jsonpath="):
            yield from _of_template(word.partition("=")[2])
        elif word.startswith("--sort-by="):
            yield word.partition("=")[2]


def _of_template(template: str) -> Iterator[str]:
    """The fields of a jsonpath template; those in a range are below what it goes through."""
    base = ""
    for part in re.findall(r"\{([^}]*)\}", template):
        if part.startswith("range "):
            base = part.removeprefix("range ").removeprefix(".items[*]")
        elif part.startswith("."):
            yield base + part


@cache
def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text())
    return found


def _exists(schema: dict[str, Any], path: str) -> bool:
    part: Any = schema
    for step in re.findall(r"\.(\w+)|(\[\*\])", path):
        while "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        below = part.get("items") if step[1] else part.get("properties", {}).get(step[0])
        if below is None:
            return False
        part = below
    return True
