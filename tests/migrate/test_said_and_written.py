"""What is said of a label, variable, annotation or toleration is what becomes of it, with and without --unsafe."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import fields_at, items_at
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.objects import objects, title
from kubectl_dra.manifests.workloads import containers
from kubectl_dra.migrate.device_plugins.labels import node_selector, preferred, required_terms
from kubectl_dra.migrate.device_plugins.pods import pods_of
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigratedFile
from tests.migrate.runs import catalogue, dump, settings
from tests.migrate.test_cases import CASES

ROOT: Final = Path(__file__).resolve().parents[2]
PUBLIC: Final = ROOT.parent / "shared" / "cases" / "real"
OFFERED: Final = "with --unsafe "
GOES: Final = re.compile(r"(\S+) goes(?: with the request: |\. )")
STAYS: Final = re.compile(r"(\S+) stays on the pod\. ")
ALSO: Final = re.compile(r"(\S+) \w+(?: [^;]+)? stays, and also becomes a selector")
TOLERATES: Final = re.compile(r"the pod tolerates ([^:]+):")


def texts() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.yaml")):
        for case in yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            yield pytest.param(case["before"], id=f"{path.stem}: {case['name']}")
    files = [*ROOT.glob("examples/**/*.yaml"), *(PUBLIC.rglob("*.y*ml") if PUBLIC.is_dir() else ())]
    for path in sorted(files):
        yield pytest.param(path.read_text(), id=str(path.relative_to(ROOT.parent)))


def pairs() -> Iterator[Any]:
    """A pod for each two resources, with every label that may be about either."""
    names = ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi"]
    labels = {
        "nvidia.com/gpu.product": ("NVIDIA-L4", "NVIDIA-L4-SHARED", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"),
        "nvidia.com/gpu.memory": ("40960",),
        "nvidia.com/gpu.count": ("8",),
        "nvidia.com/gpu.sharing-strategy": ("none", "mps"),
        "nvidia.com/gpu.present": ("true",),
        "cloud.google.com/gke-accelerator": ("nvidia-l4",),
        "amd.com/gpu.vram": ("192G",),
        "amd.com/gpu.family": ("AI",),
        "gpu.intel.com/family": ("Max_Series",),
    }
    for one, other in combinations((*names, ""), 2):
        for key, values in labels.items():
            for value in values:
                for spec in _placed(key, value):
                    spec["containers"] = [
                        {"name": f"c{number}", "image": "a:1", "resources": {"limits": {name: 1}}}
                        for number, name in enumerate(filter(None, (one, other)))
                    ]
                    yield {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def _placed(key: str, value: str) -> Iterator[dict[str, Any]]:
    """The condition in a nodeSelector, in the only term, in one of two terms, and as a preference."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    yield {"nodeSelector": {key: value}}
    for terms in ([term], [term, zone], [term, term]):
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        yield {"affinity": {"nodeAffinity": required}}
    preference = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    yield {"affinity": {"nodeAffinity": preference}}


def named(raw: Any) -> Counter[str]:
    """The labels, annotations, variables and tolerations of an object's pods, by name."""
    out: Counter[str] = Counter()
    for spec in pods_of(raw, catalogue()).specs:
        stated = [*node_selector(spec.content), *preferred(spec.content)]
        stated += [condition for term in required_terms(spec.content) for condition in term.stated]
        out.update(condition.key for condition in stated)
        out.update(map(str, fields_at(spec.metadata, "annotations")))
        for container in containers(spec):
            out.update(
                str(variable.get("name"))
                for variable in items_at(container.content, "env")
                if isinstance(variable, dict)
            )
            out.update(map(str, fields_at(container.content, "env")))
        tolerations = items_at(spec.content, "tolerations")
        out.update(f"toleration {toleration.get('key')}" for toleration in tolerations if isinstance(toleration, dict))
    return out


def by_title(text: str) -> dict[str, Counter[str]]:
    out: dict[str, Counter[str]] = {}
    for document in read_documents(text, "f.yaml"):
        for manifest in objects((document,)):
            out.setdefault(title(manifest.object), Counter()).update(named(manifest.object))
    return out


def check(result: MigratedFile) -> None:
    assert result.text is not None
    before, after = by_title(result.text.before), by_title(result.text.after)
    for name, was in before.items():
        now = after.get(name, Counter())
        items = [item for item in result.items if item.object == name]
        made = [item.message for item in items if item.sort in ("change", "note")]
        made = [message for message in made if not message.startswith(OFFERED)]
        for message in made:
            for found in GOES.findall(message):
                assert now[found] < was[found], message
            for found in (*STAYS.findall(message), *ALSO.findall(message)):
                assert now[found] == was[found] > 0, message
            for keys in TOLERATES.findall(message):
                assert all(now[f"toleration {key}"] > was[f"toleration {key}"] for key in keys.split(", ")), message
        for message in (item.message for item in items if item.message.startswith(OFFERED)):
            for found in GOES.findall(message):
                assert now[found] == was[found] > 0, message
        for gone in was - now:
            assert any(gone in message for message in made), f"{gone} is gone, and nothing says so: {made}"
        for come in now - was:
            assert any(come.removeprefix("toleration ") in message for message in made), f"{come} has come: {made}"


def migrated(text: str, unsafe: bool) -> None:
    try:
        report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(settings(), unsafe))
    except InputError:
        # What cannot be read says nothing.
        return
    assert not report.defects
    for result in report.files:
        if any(item.object for item in result.items):
            check(result)


@pytest.mark.parametrize("unsafe", [False, True], ids=["", "unsafe"])
@pytest.mark.parametrize("text", list(texts()))
def test_of_files(text: str, unsafe: bool) -> None:
    migrated(text, unsafe)


@pytest.mark.parametrize("unsafe", [False, True], ids=["", "unsafe"])
def test_of_two_resources_and_any_label(unsafe: bool) -> None:
    for pod in pairs():
        migrated(dump(pod), unsafe)
