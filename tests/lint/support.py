"""Running lint on texts."""

from __future__ import annotations

from kubectl_dra.api.releases import Release, default_features
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import LocatedFinding, Report
from kubectl_dra.manifests.inputs import Input

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""


def selecting(expression: str, device_class: str = "gpu.nvidia.com") -> str:
    """A claim for the devices of a class that an expression selects."""
    selector = f"selectors:\n        - cel:\n            expression: >-\n              {expression}\n"
    return f"{CLAIM.replace('gpu.example.com', device_class)}        {selector}"


def job(select: str = "DRA1,DRA9", minor: int = 36) -> Job:
    release = Release(1, minor)
    return Job(AssumedCluster(release, default_features(release)), Selection(tuple(select.split(","))))


def report(text: str | bytes, select: str = "DRA1,DRA9", named: bool = True, minor: int = 36) -> Report:
    data = text.encode() if isinstance(text, str) else text
    return lint([Input("f.yaml", named, data)], job(select, minor), 1)


def findings(text: str | bytes, select: str = "DRA1,DRA9") -> tuple[LocatedFinding, ...]:
    found = report(text, select)
    assert not found.defects
    return found.findings
