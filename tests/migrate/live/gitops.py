"""A repository as GitOps keeps it: a base, three overlays, a chart, and an Argo Application that sets its values."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import yaml

from tools.controlplane.client import Json
from tools.controlplane.cluster import OWNER_LABEL

PRODUCTS = {
    "dev": "NVIDIA-A100-SXM4-80GB",
    "staging": "NVIDIA-H100-80GB-HBM3",
    "prod": "NVIDIA-L4",
    "llm": "Tesla-T4",
}
"""The GPUs that each of the four builds is meant for, as feature discovery writes the product."""
COUNTS = {"dev": 1, "staging": 2, "prod": 4, "llm": 3}
OVERLAYS = ("dev", "staging", "prod")


def repository(folder: Path, namespace: str) -> Path:
    """The repository, whose pods go to the nodes of the namespace's test only."""
    files = {
        "apps/base/kustomization.yaml": "resources:\n- deployment.yaml\n",
        "apps/base/deployment.yaml": _deployment(namespace),
        "apps/overlays/dev/kustomization.yaml": f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: {namespace}
namePrefix: dev-
resources:
- ../../base
""",
        "apps/overlays/staging/kustomization.yaml": f"""\
namespace: {namespace}
nameSuffix: -staging
resources: [../../base]
patches:
- path: gpus.yaml
images:
- name: registry.example.com/trainer
  newTag: "4"
""",
        "apps/overlays/staging/gpus.yaml": _patch("staging"),
        "apps/overlays/prod/kustomization.yaml": f"""\
namespace: {namespace}
resources:
- ../../base
patches:
- path: gpus.yaml
configMapGenerator:
- name: settings
  literals: [level=info]
""",
        "apps/overlays/prod/gpus.yaml": _patch("prod"),
        "charts/llm/Chart.yaml": "apiVersion: v2\nname: llm\nversion: 1.0.0\n",
        "charts/llm/values.yaml": "nodeSelector: {}\nresources: {}\n",
        "charts/llm/templates/deployment.yaml": _TEMPLATE,
        "argocd/llm.yaml": f"""\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: llm
  namespace: argocd
spec:
  project: default
  destination: {{server: https://kubernetes.default.svc, namespace: {namespace}}}
  source:
    repoURL: https://git.example.com/platform
    path: charts/llm
    helm:
      valuesObject:
        nodeSelector:
          {OWNER_LABEL}: {namespace}
          nvidia.com/gpu.product: {PRODUCTS["llm"]}
        resources:
          limits:
            nvidia.com/gpu: {COUNTS["llm"]}
""",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def builds(folder: Path) -> list[Json]:
    """What the overlays build."""
    return [raw for name in OVERLAYS for raw in _objects(["kubectl", "kustomize", f"{folder}/apps/overlays/{name}"])]


def chart(folder: Path, *renderer: str) -> list[Json]:
    """What Argo CD makes of the Application: the chart with its values, and through a post-renderer.

    Rendered by helm where it is installed; else by filling in the values, for which the template is simple enough.
    """
    application = yaml.safe_load((folder / "argocd/llm.yaml").read_text())
    values = application["spec"]["source"]["helm"]["valuesObject"]
    if shutil.which("helm") is None:
        text = (folder / "charts/llm/templates/deployment.yaml").read_text()
        for name, value in values.items():
            text = text.replace(f"{{{{ toJson .Values.{name} }}}}", json.dumps(value))
        if not renderer:
            return list(yaml.safe_load_all(text))
        done = subprocess.run(renderer, input=text, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr
        return [raw for raw in yaml.safe_load_all(done.stdout) if raw]
    file = folder.parent / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    command = ["helm", "template", "llm", f"{folder}/charts/llm", "-f", str(file)]
    if renderer:
        script = folder.parent / "post.sh"
        script.write_text(f"#!/bin/sh\nexec {' '.join(renderer)}\n")
        script.chmod(0o755)
        command += ["--post-renderer", str(script)]
    return _objects(command)


def _objects(command: list[str]) -> list[Json]:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [raw for raw in yaml.safe_load_all(done.stdout) if raw]


def _deployment(namespace: str) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
spec:
  replicas: 1
  selector:
    matchLabels: {{app: trainer}}
  template:
    metadata:
      labels: {{app: trainer}}
    spec:
      nodeSelector:
        {OWNER_LABEL}: {namespace}
        nvidia.com/gpu.product: {PRODUCTS["dev"]}
      tolerations:
      - key: dedicated
        operator: Exists
      containers:
      - name: trainer
        image: registry.example.com/trainer:3
        resources:
          limits:
            # one is enough to try it
            nvidia.com/gpu: {COUNTS["dev"]}
            memory: 1Gi
"""


def _patch(name: str) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
spec:
  template:
    spec:
      nodeSelector:
        nvidia.com/gpu.product: {PRODUCTS[name]}
      containers:
      - name: trainer
        resources:
          limits:
            nvidia.com/gpu: {COUNTS[name]}
"""


_TEMPLATE: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: llm
spec:
  replicas: 1
  selector:
    matchLabels: {app: llm}
  template:
    metadata:
      labels: {app: llm}
    spec:
      nodeSelector: {{ toJson .Values.nodeSelector }}
      containers:
      - name: server
        image: registry.example.com/llm:1
        resources: {{ toJson .Values.resources }}
"""
