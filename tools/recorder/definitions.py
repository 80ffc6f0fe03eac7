"""The CustomResourceDefinitions that other layers publish, without their descriptions, for tests on a real API server.

    python -m tools.recorder.definitions DIRECTORY

takes them from DIRECTORY, which has a git clone of each repository of SOURCES under its name (``kueue``), and writes
`tests/neighbours/definitions.jsonl.gz`: a line for each, with the file it comes from. All are under Apache-2.0.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from tools.recorder.recorded import lines

FILE = Path(__file__).parents[2] / "tests" / "neighbours" / "definitions.jsonl.gz"
_KUEUE: Final = "config/components/crd/bases/kueue.x-k8s.io_"
_KAI: Final = "deployments/kai-scheduler/crds/scheduling.run.ai_"
_AUTOSCALER: Final = "cluster-autoscaler/apis/config/crd/autoscaling.x-k8s.io_"
_KUBEVIRT: Final = "pkg/virt-operator/resource/generate/components/validations_generated.go"
_NVIDIA: Final = "deployments/helm/dra-driver-nvidia-gpu/crds/resource.nvidia.com_"


class Source(NamedTuple):
    """A repository at GitHub, one of its releases, and files in it, whose names begin alike and end in ``.yaml``.

    Of a Go file that has the schemas of several kinds, ``files`` are these kinds.
    """

    repository: str
    release: str
    beginning: str
    files: tuple[str, ...]


SOURCES: Final = (
    Source("kubernetes-sigs/kueue", "v0.19.2", _KUEUE, ("workloads", "localqueues", "clusterqueues", "cohorts")),
    Source("volcano-sh/volcano", "v1.15.1", "config/crd/volcano/bases/scheduling.volcano.sh_", ("podgroups", "queues")),
    Source("volcano-sh/volcano", "v1.15.1", "config/crd/volcano/bases/batch.volcano.sh_", ("jobs",)),
    Source("kai-scheduler/KAI-Scheduler", "v0.17.0", _KAI, ("bindrequests", "podgroups", "queues")),
    Source("kubernetes-sigs/lws", "v0.10.0", "config/crd/bases/leaderworkerset.x-k8s.io_", ("leaderworkersets",)),
    Source("kubernetes-sigs/jobset", "v0.12.0", "config/components/crd/bases/jobset.x-k8s.io_", ("jobsets",)),
    Source("kubernetes/autoscaler", "cluster-autoscaler-1.36.1", _AUTOSCALER, ("provisioningrequests",)),
    Source("kubernetes-sigs/karpenter", "v1.14.1", "pkg/apis/crds/karpenter.sh_", ("nodeclaims", "nodepools")),
    Source("kubernetes-sigs/dra-driver-nvidia-gpu", "v0.4.1", _NVIDIA, ("computedomains", "computedomaincliques")),
    Source("NVIDIA/gpu-operator", "v26.7.0", "config/crd/bases/nvidia.com_", ("clusterpolicies",)),
    Source("Mellanox/network-operator", "v26.4.1", "config/crd/bases/mellanox.com_", ("nicclusterpolicies",)),
    Source("kubevirt/kubevirt", "v1.9.0", _KUBEVIRT, ("VirtualMachine", "VirtualMachineInstance")),
)


def definitions() -> list[dict[str, Any]]:
    """The recorded definitions, as they are given to an API server."""
    return [line["definition"] for line in lines(FILE)]


def _bare(schema: Any) -> Any:
    """The same without the descriptions of fields; a field that is called so stays."""
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    out = {}
    for key, value in schema.items():
        if key == "properties":
            out[key] = {name: _bare(each) for name, each in value.items()}
        elif key != "description" or not isinstance(value, str):
            out[key] = _bare(value)
    return out


def _in_go(text: str, kind: str) -> Any:
    """The definition that KubeVirt's operator makes of the schema of a kind (``crds.go`` beside it)."""
    singular = kind.lower()
    (schema,) = re.findall(rf'^\t"{singular}": `(.*?)`,$', text, re.DOTALL | re.MULTILINE)
    names = {"kind": kind, "plural": f"{singular}s", "singular": singular}
    version = {"name": "v1", "served": True, "storage": True, "schema": yaml.safe_load(schema)}
    if kind == "VirtualMachine":
        version["subresources"] = {"status": {}}
    spec = {"group": "kubevirt.io", "scope": "Namespaced", "names": names, "versions": [version]}
    metadata = {"name": f"{singular}s.kubevirt.io"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def main(directory: Path) -> None:
    """Writes the file."""
    out = []
    for source in SOURCES:
        clone = directory / source.repository.rpartition("/")[2]
        for name in source.files:
            in_go = source.beginning.endswith(".go")
            path = source.beginning if in_go else f"{source.beginning}{name}.yaml"
            command = ["git", "-C", str(clone), "show", f"{source.release}:{path}"]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            origin = {"repository": source.repository, "release": source.release, "file": path}
            definition = _in_go(text, name) if in_go else yaml.safe_load(text)
            out.append(json.dumps({**origin, "definition": _bare(definition)}, separators=(",", ":")))
    FILE.write_bytes(gzip.compress("".join(f"{line}\n" for line in out).encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
