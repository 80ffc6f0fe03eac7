"""A real API server takes what lint calls clean, and refuses what lint calls an error of its rules."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from kubectl_dra.api.releases import Release, default_features, parse_release
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.rules import RULES
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.objects import is_object, objects
from tests.lint.cases import cases
from tools.controlplane.client import ApiError
from tools.controlplane.cluster import Cluster

Json = dict[str, Any]
CORPUS = Path(__file__).parents[2] / "conformance" / "data" / "manifests.jsonl.gz"
EXAMPLES = Path(__file__).parents[3] / "examples"
GATES = {"DRADeviceTaintRules", "DRAResourcePoolStatus", "DRADeviceTaints"}
"""What the full profile has beyond the defaults."""

# Findings that say that the server refuses an object; others say that it is taken and fails later.
SERVERS = Selection(("DRA1", "DRA501", "DRA502", "DRA505", "DRA507"), ("DRA115",))

# Its bad example would keep the server's processor busy for minutes, and with it all other tests.
NEVER_SENT = "DRA311"

# In the shapes that articles about DRA print: fields of older or imagined APIs, and what they should be.
PRINTED = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: slice-of-a-gpu}
spec:
  devices:
    requests:
    - name: gpu
      deviceClassName: gpu.nvidia.com
      partitionRequest: {count: 1, resources: {memory: 20Gi}}
---
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: wanted}
spec:
  deviceRequests:
  - {name: gpus, allocationMode: ExactCount, count: 8}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-1-gpus}
spec:
  driver: gpu.nvidia.com
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic: {attributes: {architecture: {string: Ampere}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: node-2-gpus}
spec:
  driver: gpu.nvidia.com
  nodeName: node-2
  pool: {name: node-2, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic: {attributes: {gpu.nvidia.com: {model: {string: H100}}}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: big}
spec:
  selectors:
  - cel: {expression: 'device.capacity["gpu.nvidia.com"].memory >= quantity("16Gi")'}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: configured}
spec:
  config:
    opaque: {driver: gpu.nvidia.com, parameters: {kind: GpuConfig}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: linked}
spec:
  spec:
    devices:
      requests:
      - {name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}
      constraints:
      - {requests: [gpu], matchAttribute: gpu.nvidia.com/numa-node}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: of-long-ago}
spec: {resourceClassName: gpu.nvidia.com}
---
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
  - {name: trainer, image: registry.example.com/trainer:1, resources: {claims: [{name: gpu}]}}
  resourceClaims:
  - {name: gpu, source: {resourceClaimTemplateName: linked}}
---
apiVersion: v1
kind: Pod
metadata: {name: trainer}
spec:
  containers:
  - {name: trainer, image: registry.example.com/trainer:1, resources: {claims: [{name: gpu}]}}
  resourceClaims:
  - {name: gpu, resourceClaimTemplateName: linked}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: serve, image: registry.example.com/serve:1, resources: {claims: [{name: gpu}]}}
      resourceClaims:
      - {name: gpu, resourceClaimTemplateName: linked}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: research}
spec:
  hard:
    count/resourceclaims: "10"
    nvidia-h100-80gb.resource.k8s.io/count: "16"
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: broken}
spec:
  hard: {gpu.nvidia.com.deviceclass.resource.k8s.io/devices: "1.5"}
"""


def of_texts(texts: Iterable[str]) -> Iterator[Json]:
    for text in texts:
        for found in yaml.load_all(text, Loader=yaml.CSafeLoader):
            if is_object(found):
                yield found


def of_rules() -> Iterator[Json]:
    for rule in RULES:
        if not rule.code.startswith("DRA9"):
            yield from of_texts((rule.good(),) if rule.code == NEVER_SENT else (rule.bad(), rule.good()))


def of_cases() -> Iterator[Json]:
    for case in cases():
        if case.code.startswith("DRA1"):
            yield from of_texts([case.text])


def of_corpus() -> Iterator[Json]:
    with gzip.open(CORPUS, "rt") as lines:
        for number, line in enumerate(lines):
            if number % 13 == 0:
                yield json.loads(line)["manifest"]


def of_examples() -> Iterator[Json]:
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for found in objects(one for one in read_documents(path.read_bytes(), str(path)) if is_object(one.object)):
            yield found.object


def of_articles() -> Iterator[Json]:
    return of_texts([PRINTED])


SOURCES: Mapping[str, Callable[[], Iterator[Json]]] = {
    "rules": of_rules,
    "cases": of_cases,
    "corpus": of_corpus,
    "examples": of_examples,
    "articles": of_articles,
}


@pytest.fixture
def release(api_cluster: Cluster) -> Release:
    found = parse_release(api_cluster.api.request("GET", "/version")["gitVersion"])
    return Release(found.major, found.minor)


def said(raw: Json, release: Release) -> list[str]:
    """The complaints of lint that are about the server's rules."""
    job = Job(AssumedCluster(release, default_features(release) | GATES), SERVERS)
    found = lint([Input("manifest.json", True, json.dumps(raw).encode())], job, 1)
    assert not found.defects
    return [f"{one.code} {one.field}: {one.message}" for one in found.findings if one.severity == "error"]


def refused(cluster: Cluster, raw: Mapping[str, Any]) -> str:
    """Why the server does not take the object, in a dry run; empty if it does."""
    try:
        kinds = cluster.api.kinds(raw["apiVersion"])
        namespace = cluster.namespace if kinds[raw["kind"]].namespaced else ""
        path = cluster.api.path(raw["apiVersion"], raw["kind"], namespace)
        query = urlencode({"dryRun": "All", "fieldValidation": "Strict"})
        cluster.api.request("POST", f"{path}?{query}", dict(raw))
    except ApiError as error:
        # It is there already: admission and validation are done then.
        return "" if error.status == 409 else str(error)
    except KeyError:
        return "no such kind"
    except RemoteDisconnected:
        # Its own code failed on the object.
        cluster.api.close()
        return "no answer"
    return ""


def here(raw: Json, cluster: Cluster) -> Json:
    """The object in the test's namespace, where its kind is namespaced, under a name that nobody else has.

    Without its status, which a creation drops unread; tests/admission/server judges recorded updates of the status.
    """
    moved = copy.deepcopy(raw)
    moved.pop("status", None)
    metadata = moved.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("namespace"), str):
        metadata["namespace"] = cluster.namespace
    if isinstance(moved.get("spec"), dict) and moved["kind"] == "Pod":
        # The cluster that it was read from set it, by a PriorityClass that this one does not have.
        moved["spec"].pop("priority", None)
        moved["spec"].pop("priorityClassName", None)
    return moved


def known(raw: Json, cluster: Cluster) -> bool:
    """Whether lint speaks of such objects: DRA's, and those of Kubernetes with claims or quotas in them."""
    group = raw["apiVersion"].rpartition("/")[0]
    if group == "resource.k8s.io":
        return not raw["kind"].endswith("List")
    if raw["apiVersion"] not in ("v1", "apps/v1", "batch/v1") or raw["kind"] in ("List", "Node", "Namespace", "Event"):
        return False
    text = json.dumps(raw)
    return "resourceClaim" in text or '"claims"' in text or "resource.k8s.io" in text


@pytest.mark.parametrize("source", SOURCES)
def test_the_server_agrees(source: str, api_cluster: Cluster, release: Release) -> None:
    cluster = api_cluster
    # Whether admin access is allowed depends on the namespace, of which lint is told nothing here.
    cluster.allow_admin_access()
    total = taken = 0
    wrong = []
    for raw in SOURCES[source]():
        if not known(raw, cluster):
            continue
        moved = here(raw, cluster)
        ours, theirs = said(moved, release), refused(cluster, moved)
        total += 1
        taken += not theirs
        if bool(ours) != bool(theirs):
            wrong.append(f"{moved['kind']} {moved.get('metadata')}\n  lint: {ours}\n  server: {theirs[:500]}")
    print(f"{source}: {total} manifests, {taken} taken")
    assert not wrong, f"{len(wrong)} of {total}\n" + "\n".join(wrong)
    assert total >= {"rules": 100, "cases": 40, "corpus": 190, "examples": 60, "articles": 13}[source]
    assert taken or source == "articles"
