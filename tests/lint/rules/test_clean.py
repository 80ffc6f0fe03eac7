"""Manifests in the shapes that drivers publish as examples: there is nothing to say about them."""

from __future__ import annotations

import pytest

from tests.lint.cases import report_of

POD = """\
---
apiVersion: v1
kind: Pod
metadata:
  name: pod-1
spec:
  containers:
  - name: one
    image: registry.example.com/cuda:1
    resources:
      claims: [%s]
  resourceClaims:
  - name: %s
    resourceClaimTemplateName: %s
"""


def template(name: str, device_class: str, selector: str = "", rest: str = "", mode: str = "") -> str:
    lines = [
        "apiVersion: resource.k8s.io/v1",
        "kind: ResourceClaimTemplate",
        f"metadata: {{name: {name}}}",
        "spec:",
        "  spec:",
        "    devices:",
        "      requests:",
        "      - name: gpu",
        "        exactly:",
        f"          deviceClassName: {device_class}",
    ]
    lines += [f"          {line}" for line in mode.splitlines()]
    if selector:
        lines += ["          selectors:", "          - cel:", f"              expression: {selector!r}"]
    return "\n".join([*lines, *(f"      {line}" for line in rest.splitlines())]) + "\n"


CLEAN = {
    "one GPU": template("single", "gpu.nvidia.com") + POD % ("{name: gpu}", "gpu", "single"),
    "a MIG slice": template("mig", "mig.nvidia.com", "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"),
    "slices of one card": template(
        "pair", "mig.nvidia.com", "", "constraints:\n- matchAttribute: gpu.nvidia.com/parentUUID", "count: 2"
    ),
    "a product by a part of its name": template(
        "h100", "gpu.nvidia.com", "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*h100.*$')"
    ),
    "enough memory": template(
        "big", "gpu.nvidia.com", "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"
    ),
    "a driver's version": template(
        "new", "gpu.nvidia.com", "device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0'))"
    ),
    "a configuration of the driver": template(
        "shared",
        "gpu.nvidia.com",
        rest="config:\n- requests: [gpu]\n  opaque:\n    driver: gpu.nvidia.com\n    parameters:\n"
        "      apiVersion: resource.nvidia.com/v1beta1\n      kind: GpuConfig\n",
    ),
    "a network interface that no container names": template(
        "nic", "dranet", "has(device.attributes['dra.net'].ifName) && device.attributes['dra.net'].ifName == 'eth1'"
    )
    + POD % ("", "nic", "nic"),
    "all chips of a node": template("tpu", "tpu.google.com", mode="allocationMode: All"),
    "an Intel GPU": template("arc", "gpu.intel.com", "device.attributes['gpu.intel.com'].family.startsWith('Arc')"),
    "a partition of an AMD GPU": template(
        "cpx", "gpu.amd.com", "device.attributes['gpu.amd.com'].type == 'amdgpu-partition'"
    ),
    "a class of its own": """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig-small}
spec:
  selectors:
  - cel:
      expression: >-
        device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig' &&
        device.attributes['gpu.nvidia.com'].profile == '1g.12gb'
  extendedResourceName: nvidia.com/mig-1g.12gb
""",
    "a taint rule": """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: bad-gpu}
spec:
  deviceSelector: {driver: gpu.example.com, pool: node-1, device: gpu-3}
  taint: {key: example.com/unhealthy, effect: NoExecute}
""",
}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found(name: str) -> None:
    report = report_of(CLEAN[name])
    assert [(found.code, found.message) for found in report.findings] == []
    assert report.objects
