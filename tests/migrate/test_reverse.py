"""The way back: exactly what was there where that can be known, the same for the pod elsewhere, or a refusal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.releases import parse_release
from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.reverse import run as reverse_run
from kubectl_dra.migrate.reverse.run import reverse
from tests.migrate.runs import back, catalogue, forward, settings
from tests.migrate.test_cases import cases
from tests.migrate.test_real import FOLDER

ALL: Final = [case for case in cases() if "after" in case.values[0]]


def options(case: dict[str, Any]) -> MigrationSettings:
    given = case.get("options", {})
    chosen: dict[str, Any] = {key: given[key] for key in ("strategy", "share") if key in given}
    return MigrationSettings(catalogue(), parse_release(given.get("release", "1.36")), **chosen)


@pytest.mark.parametrize("case", ALL)
def test_every_case(case: dict[str, Any]) -> None:
    found, report = back(case["after"], options(case))
    refused = {item.code for item in report.items("refusal")}
    expected = case.get("back", "before")
    if expected in ("before", "same"):
        assert (found == case["before"]) == (expected == "before")
        assert asked(found) == asked(case["before"])
        # Whatever it looks like, migrate makes the same of it.
        again = [document.object for document in read_documents(forward(found, options(case)), "f.yaml")]
        assert again == [document.object for document in read_documents(case["after"], "f.yaml")]
    else:
        assert found == case["after"]
        assert refused == (set() if expected == "nothing" else {expected})


def quantity(amount: Any) -> Quantity | str:
    try:
        return Quantity.from_json(amount)
    except QuantityError:
        return str(amount)


def asked(text: str) -> list[tuple[Any, dict[str, Quantity | str], Any]]:
    """Each container that asks for devices: its name, how many of each resource, and the claims that it uses."""
    out: list[tuple[Any, dict[str, Quantity | str], Any]] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            resources = value.get("resources")
            resources = resources if isinstance(resources, dict) else {}
            both = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
            # A template's parameter is no quantity yet.
            devices = {name: quantity(amount) for name, amount in both.items() if "/" in name}
            devices = {name: amount for name, amount in devices.items() if amount != Quantity.of(0)}
            if devices or resources.get("claims"):
                out.append((value.get("name"), devices, resources.get("claims")))
            for below in value.values():
                look(below)
        elif isinstance(value, list):
            for below in value:
                look(below)

    for document in read_documents(text, "f.yaml"):
        look(document.object)
    return out


LABELS: Final = (
    ("nvidia.com/gpu", "nvidia.com/gpu.product", "In", ["NVIDIA-A100-SXM4-80GB"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.product", "In", ["A100-SXM4-40GB"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.product", "In", ["Quadro-RTX-6000"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.product", "NotIn", ["Tesla-T4", "NVIDIA-L4", "A10"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.family", "In", ["ampere", "hopper"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.memory", "In", ["40960", "81920"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.memory", "Gt", ["40000"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.memory", "Lt", ["40000"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.compute.major", "Gt", ["7"]),
    ("nvidia.com/gpu", "nvidia.com/gpu.compute.major", "NotIn", ["8", "9"]),
    ("nvidia.com/gpu", "nvidia.com/cuda.driver-version.full", "In", ["570.133.20"]),
    ("amd.com/gpu", "amd.com/gpu.vram", "In", ["192G"]),
    ("amd.com/gpu", "amd.com/gpu.device-id", "In", ["74a1"]),
)


def labelled(resource: str, key: str, operator: str, values: list[str]) -> str:
    return (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: main\n    image: a:1\n"
        f"    resources:\n      limits:\n        {resource}: 3\n"
        "  affinity:\n    nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n"
        f"        nodeSelectorTerms:\n        - matchExpressions:\n          - {{key: {key}, operator: {operator}, "
        f"values: {values}}}\n"
    )


@pytest.mark.parametrize(("resource", "key", "operator", "values"), LABELS)
def test_labels_come_back(resource: str, key: str, operator: str, values: list[str]) -> None:
    after = forward(labelled(resource, key, operator, values))
    assert "selectors" in after and key not in after
    found, report = back(after)
    assert not report.open
    spec = read_documents(found, "f.yaml")[0].object["spec"]
    if operator == "In" and len(values) == 1:
        assert spec["nodeSelector"] == {key: values[0]}
    else:
        (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        assert term["matchExpressions"] == [{"key": key, "operator": operator, "values": values}]


PLAIN = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  containers:
  - name: main
    image: a:1
    resources:
      limits:
        nvidia.com/gpu: 2
"""
CLAIMED = forward(PLAIN)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("count: 2", "count: 2\n          tolerations: [{operator: Exists}]", "MIG511"),
        ("deviceClassName: gpu.nvidia.com", "deviceClassName: gold", "MIG512"),
        ("deviceClassName: gpu.nvidia.com", "deviceClassName: rebellions.ai", "MIG512"),
        ("count: 2", "count: 2\n      constraints:\n      - matchAttribute: a.example.com/b", "MIG511"),
        ("count: 2", "allocationMode: All", "MIG512"),
        ("count: 2", 'count: "2"', "MIG511"),
        (
            "count: 2",
            "selectors:\n          - cel:\n              expression: device.attributes['gpu.nvidia.com'].index < 4",
            "MIG512",
        ),
        ("name: train-gpu\nspec", "name: other\nspec", "MIG513"),
        ("request: gpu", "request: gpu2", "MIG511"),
    ],
)
def test_what_migrate_did_not_make_is_refused(old: str, new: str, code: str) -> None:
    text = CLAIMED.replace(old, new)
    assert text != CLAIMED
    found, report = back(text)
    (refusal,) = report.items("refusal")
    assert (found, refusal.code) == (text, code)
    assert refusal.way_out


def test_the_toleration_stays_unless_it_is_asked_to_go() -> None:
    found, report = back(CLAIMED, unsafe=False)
    assert found == PLAIN + "  tolerations:\n  - key: nvidia.com/gpu\n    operator: Exists\n    effect: NoSchedule\n"
    assert [item.code for item in report.items("offer")] == ["MIG504"]
    assert back(CLAIMED)[0] == PLAIN


def test_amounts_are_written_as_the_others() -> None:
    text = PLAIN.replace("nvidia.com/gpu: 2", 'cpu: "8"\n        nvidia.com/gpu: "2"')
    assert back(forward(text))[0] == text


def test_a_toleration_of_the_user_stays() -> None:
    own = PLAIN + "  tolerations:\n  - {key: nvidia.com/gpu, operator: Equal, value: present}\n"
    assert back(forward(own))[0] == own


def test_a_template_that_others_need_stays() -> None:
    other = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other}\nspec:\n  resourceClaims:\n"
    other += "  - {name: x, resourceClaimTemplateName: train-gpu}\n  containers:\n  - {name: c, image: a}\n"
    found, report = back(CLAIMED + other)
    assert found.startswith(PLAIN) and "kind: ResourceClaimTemplate" in found and found.endswith(other)
    assert {item.code for item in report.items("refusal")} == {"MIG511"}


def test_copies_of_a_workload_go_back_by_the_claims_of_their_own_file() -> None:
    texts = [PLAIN, PLAIN.replace("gpu: 2", "gpu: 4")]
    made = migrate([Input(f"{n}.yaml", True, text.encode()) for n, text in enumerate(texts)], MigrationJob(settings()))
    inputs = [Input(file.name, True, file.text.after.encode()) for file in made.files if file.text is not None]
    report = reverse(inputs, MigrationJob(settings(), True))
    assert [file.text.after for file in report.files if file.text is not None] == texts


def test_a_file_of_claims() -> None:
    inputs = [Input("pod.yaml", True, PLAIN.encode())]
    report = migrate(inputs, MigrationJob(settings(), claims_file="claims.yaml"))
    texts = {file.name: file.text.after for file in report.all_files if file.text is not None}
    assert texts.keys() == {"pod.yaml", "claims.yaml"}
    undone = reverse([Input(name, True, text.encode()) for name, text in texts.items()], MigrationJob(settings(), True))
    assert {file.name: file.text.after for file in undone.files if file.text} == {"pod.yaml": PLAIN, "claims.yaml": ""}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_claims_of_every_version(version: str) -> None:
    assert back(forward(PLAIN, settings(version)), settings(version))[0] == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("\n", "\r\n"),
        PLAIN.removesuffix("\n"),
        f"---\n{PLAIN}",
        f"# top\n{PLAIN}# end\n",
        f"{PLAIN}---\napiVersion: v1\nkind: Service\nmetadata: {{name: s}}\n",
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: "
        "[{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}]}\n",
        '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, '
        '"spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}]}',
    ],
)
def test_bytes(text: str) -> None:
    after = forward(text)
    assert after != text
    assert back(after)[0] == text


def test_a_comment_in_the_template_keeps_it() -> None:
    text = CLAIMED.replace("count: 2", "count: 2 # as agreed")
    found, report = back(text)
    assert "# as agreed" in found and "claims" not in read_documents(found, "f.yaml")[0].object["spec"]
    assert [item.code for item in report.items("note") if item.code == "MIG514"]


def test_a_quota_counts_no_claims_any_more() -> None:
    quota = (
        'apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec:\n  hard:\n    requests.nvidia.com/gpu: "8"\n'
    )
    after = forward(quota)
    assert back(after)[0] == quota
    changed = after.replace('devices: "8"', 'devices: "4"')
    assert changed != after
    found, report = back(changed)
    assert found == changed and [item.code for item in report.items("refusal")] == ["MIG511"]


TPU: Final = PLAIN.replace("nvidia.com/gpu: 2", "google.com/tpu: 8").replace(
    "spec:\n",
    "spec:\n  nodeSelector:\n    cloud.google.com/gke-tpu-accelerator: tpu-v6e-slice\n"
    "    cloud.google.com/gke-tpu-topology: 2x4\n",
)


def test_all_devices_of_a_node_are_as_many_as_its_topology_has() -> None:
    """The claim says All, and the label that stayed on the pod how many that is."""
    after = forward(TPU)
    assert "allocationMode: All" in after and back(after)[0] == TPU
    without = TPU.replace("    cloud.google.com/gke-tpu-topology: 2x4\n", "")
    found, report = back(forward(without))
    assert found == forward(without)
    (item,) = report.items("refusal")
    assert item.code == "MIG512" and "no label of the pod says how many" in item.message


@pytest.mark.parametrize(
    "value", ["A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me", "NVIDIA-H100-80GB-HBM3-MIG-7g.80gb"]
)
def test_a_product_with_a_profile_comes_back_as_one_label(value: str) -> None:
    text = PLAIN + f"  nodeSelector:\n    nvidia.com/gpu.product: {value}\n"
    after = forward(text)
    assert "mig.nvidia.com" in after
    assert back(after)[0] == text


@pytest.mark.parametrize(
    ("resource", "reason"),
    [
        ("aws.amazon.com/neuron", "aws.amazon.com/neuron again; it may have been aws.amazon.com/neurondevice"),
        ("aws.amazon.com/neurondevice", "aws.amazon.com/neurondevice again"),
    ],
)
def test_two_names_of_the_same_devices(resource: str, reason: str) -> None:
    """Only one of the two has a toleration, so that only without it the other can be meant as well."""
    text = PLAIN.replace("nvidia.com/gpu", resource)
    found, report = back(forward(text))
    assert found == text
    (item,) = [item for item in report.items("change") if item.code == "MIG501"]
    assert reason in item.message and (item.safety == "unsafe") == ("may have been" in reason)


CHOSEN: Final = labelled("nvidia.com/gpu", "nvidia.com/gpu.product", "In", ["NVIDIA-A100-SXM4-80GB"])


@pytest.mark.parametrize(
    "literal",
    [r'"\x41"', r'"\101"', r'"\a"', r'"\uD800"', r'"\q"', '"a\tb"', "9" * 5000, f'quantity("{"9" * 5000}Mi")'],
)
def test_any_literal_of_a_selector_is_read(literal: str) -> None:
    """Escapes of CEL that JSON does not know, and numbers longer than Python reads."""
    after = forward(CHOSEN)
    (line,) = [line for line in after.splitlines() if "expression" in line]
    selector = f"device.attributes['gpu.nvidia.com'].productName == {literal}".replace("'", '"')
    odd = after.replace(line, line.partition("expression:")[0] + f"expression: {json.dumps(selector)}")
    found, report = back(odd)
    assert found == odd and not report.defects
    assert {item.code for item in report.items("refusal")} == {"MIG512"}


def test_an_object_whose_plan_fails_is_a_defect_and_the_others_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = reverse_run.plan

    def broken(raw: Mapping[str, Any], *rest: Any) -> Any:
        if raw["metadata"]["name"] == "p":
            raise KeyError("x")
        return plan(raw, *rest)

    monkeypatch.setattr(reverse_run, "plan", broken)
    other = CHOSEN.replace("{name: p}", "{name: q}")
    found, report = back(f"{forward(CHOSEN)}---\n{forward(other)}")
    assert report.defects == ("f.yaml: Pod p: reverse: KeyError: 'x'",)
    assert asked(found) == [*asked(forward(CHOSEN)), *asked(other)]


REAL: Final = sorted(path for path in FOLDER.rglob("*") if path.suffix in (".yml", ".yaml")) if FOLDER.is_dir() else []


@pytest.mark.skipif(not REAL, reason="the public manifests are not here")
def test_public_manifests() -> None:
    outcomes: Counter[str] = Counter()
    for path in REAL:
        text = path.read_bytes().decode("utf-8-sig")
        try:
            before = read_documents(text, "f.yaml")
        except InputError:
            continue
        after = forward(text)
        if "ResourceClaimTemplate" not in after or "ResourceClaimTemplate" in text:
            continue
        found, report = back(after)
        if report.items("refusal"):
            assert {item.code for item in report.items("refusal")} <= {"MIG512", "MIG513", "MIG904"}, path.name
            outcomes["refused"] += 1
            continue
        outcomes["exact" if found == text else "same"] += 1
        assert len(read_documents(found, "f.yaml")) == len(before), path.name
        again = [document.object for document in read_documents(forward(found), "f.yaml")]
        assert again == [document.object for document in read_documents(after, "f.yaml")], path.name
    assert outcomes["exact"] + outcomes["same"] > outcomes["refused"], outcomes
