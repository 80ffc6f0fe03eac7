"""The commands of kept outputs that change something, as a real API server judges them; it stores nothing of it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from typing import Any

import pytest

from tests.cli.test_pasted import answers
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import RESOURCE_API

RULES = "resource.k8s.io/v1beta2"
POD: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"a": "b"}}, "spec": POD}
TAINT: dict[str, Any] = {"key": "a", "value": "b", "effect": "NoSchedule"}
OBJECTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pod": ("v1", "Pod", POD),
    "node": ("v1", "Node", {}),
    "resourceclaim": (RESOURCE_API, "ResourceClaim", {"devices": {"requests": []}}),
    "devicetaintrule": (
        "resource.k8s.io/v1beta2",
        "DeviceTaintRule",
        {"deviceSelector": {"driver": "a"}, "taint": TAINT},
    ),
    "job": ("batch/v1", "Job", {"template": TEMPLATE}),
    "statefulset": (
        *("apps/v1", "StatefulSet"),
        {
            "selector": {"matchLabels": {"a": "b"}},
            "serviceName": "a",
            "template": {"metadata": TEMPLATE["metadata"], "spec": {**POD, "restartPolicy": "Always"}},
        },
    ),
}
"""What the commands are about, with as much as the server requires."""


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_server_takes_what_changes_something(cluster: Cluster) -> None:
    """Each runs with ``--dry-run=server`` in a namespace of its own, where there is what it names."""
    lines = sorted({answer.line for answer in answers() if re.search("writes|destr", answer.before, re.IGNORECASE)})
    made: set[tuple[str, str]] = set()
    own = [shlex.split(line) for line in lines if not line.startswith("kubectl dra ")]
    assert len(own) > 15
    for words in own:
        assert "&&" not in words
        if "-n" in words:
            words[words.index("-n") + 1] = cluster.namespace
        kind, named, name = words[2].partition("/") if words[1] != "drain" else ("node", "/", words[2])
        name = name if named else words[3]
        if kind == "namespace":
            words[2] = f"namespace/{cluster.namespace}"
        elif (kind, name) not in made:
            made.add((kind, name))
            version, known, spec = OBJECTS[kind]
            cluster.create({"apiVersion": version, "kind": known, "metadata": {"name": name}, "spec": spec})
        connection = ["--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin"]
        done = subprocess.run(
            [*words, *connection, "--dry-run=server"], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, (words, done.stderr)
