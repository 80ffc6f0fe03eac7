"""Anonymized objects: nothing tells whose they are, and explain says the same of them."""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

import kubectl_dra
from kubectl_dra import api
from kubectl_dra.api import dra_fields
from kubectl_dra.api.behaviour import Behaviour
from kubectl_dra.api.claims import devices_of
from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.api.schema import Field
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.anonymize import Anonymizer
from kubectl_dra.cluster.apply import overlay
from kubectl_dra.cluster.builder import SnapshotBuilder
from kubectl_dra.cluster.duplicates import Place
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.pseudonyms import Pseudonyms, is_harmless
from kubectl_dra.cluster.save import Recorder, disagreements, record_files, said
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.errors import InputError
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.report.explain_words import fix
from tools import cases as explain_cases
from tools.examples import arguments, examples
from tools.recorder.recorded import lines

EXAMPLES = examples()
DATA = Path(__file__).parents[1] / "conformance" / "data"
Json = dict[str, Any]
DRIVER = "gpu.example.org"
UUID = "GPU-8f2c5a3e-1b7d-4c21-9a10-2f4be1f0c7aa"


def built(items: Iterable[Json], gaps: Iterable[Json] = (), *, complete: bool = False) -> Snapshot:
    recorder = Recorder()
    recorder.said({"gaps": [*gaps]}, "test")
    for index, item in enumerate(items):
        recorder.add(item, Place("test", item=index))
    return recorder.build(complete=complete)


def summary(diagnosis: Diagnosis) -> Json:
    """What does not depend on names: the verdict, causes and every count."""
    return {
        "verdict": diagnosis.verdict,
        "causes": [(found.kind.code, bool(fix(found)), bool(found.proof)) for found in diagnosis.findings],
        "funnels": [
            [(stage.name, stage.passed, stage.failed, sorted(n for _, n in stage.details)) for stage in funnel.stages]
            for claim in diagnosis.claims
            for funnel in claim.funnels
        ],
        "best": [funnel.best_count for claim in diagnosis.claims for funnel in claim.funnels],
        "nodes": [(group.outcome, len(group.nodes)) for group in diagnosis.nodes],
        "devices": [len([*devices_of(placement.claims)]) for placement in diagnosis.placements],
        "words": [(word.source, word.reason, word.time) for word in diagnosis.scheduler],
        "notes": len(diagnosis.notes),
    }


def ask(
    snapshot: Snapshot, manifest: Snapshot | None, kind: str, key: tuple[str, str], release: Snapshot
) -> list[Diagnosis]:
    """What explain says of a pod or claim, or of each pod of a manifest."""
    whole = snapshot if manifest is None else overlay(snapshot, manifest)
    settings = assumed(release)
    if manifest is not None:
        return [diagnose(about_pod(pod, whole, exists=False), whole, settings) for pod in manifest.pods.values()]
    question = about_pod(whole.pods[key], whole, exists=True) if kind == "pod" else about_claim(whole.claims[key])
    return [diagnose(question, whole, settings)]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_explain_says_the_same(example: Path) -> None:
    words = arguments(example)
    path = str(example / words[words.index("--snapshot") + 1])
    manifest_path = str(example / words[words.index("-f") + 1]) if "-f" in words else ""
    cluster = record_files([path]).items()
    manifest = record_files([manifest_path]).items() if manifest_path else []
    anonymizer = Anonymizer([*cluster, *manifest], "seed")
    kind, _, name = words[1].partition("/")
    namespace = words[words.index("-n") + 1] if "-n" in words else "default"
    new = (anonymizer.namespace(namespace), anonymizer.names().get(kind, {}).get(name, ""))
    before = read_snapshot([path], complete=True)
    changed = [anonymizer.item(item) for item in cluster]
    changed_manifest = [anonymizer.item(item) for item in manifest]
    ours = ask(before, read_snapshot([manifest_path]) if manifest else None, kind, (namespace, name), before)
    theirs = ask(built(changed, complete=True), built(changed_manifest) if manifest else None, kind, new, before)
    assert ours
    assert [(one.verdict, one.findings[0].kind if one.findings else None) for one in theirs] == [
        (one.verdict, one.findings[0].kind if one.findings else None) for one in ours
    ]
    assert [summary(one) for one in theirs] == [summary(one) for one in ours]
    copied = built(changed, complete=True)
    assert disagreements(before, copied) == []
    drivers = [sorted((row.driver, row.state) for row in joined(snapshot).rows) for snapshot in (before, copied)]
    assert drivers[0] == drivers[1]
    text = json.dumps([changed, changed_manifest])
    for category in ("node", "namespace", "pod", "claim", "template", "owner"):
        for original in anonymizer.names().get(category, {}):
            # Shorter ones, such as ml, are found in other words.
            if len(original) > 4 and original not in ("batch", "media"):
                assert f'"{original}"' not in text, f"{category} {original}"


RECORDED = 200


def recorded() -> list[tuple[str, Json, Json, tuple[str, str]]]:
    """Clusters and pods of the corpora: an id, the snapshot, the manifest of the pod if it is not in it, its key."""
    out: list[tuple[str, Json, Json, tuple[str, str]]] = []
    for case in list(lines(DATA / "scheduled.jsonl.gz")):
        meta = case["pod"]["metadata"]
        out.append((case["id"], case["snapshot"], case["pod"], (meta.get("namespace", "default"), meta["name"])))
    for file in ("pods", "pod-releases"):
        for case in list(lines(DATA / f"{file}.jsonl.gz"))[::3]:
            namespace, _, name = case["pod"].partition("/") if isinstance(case["pod"], str) else ("", "", "")
            if name and len(out) < RECORDED:
                out.append((case["id"], case["snapshot"], {}, (namespace, name)))
    return out


@pytest.mark.slow
def test_explain_says_the_same_of_recorded_clusters() -> None:
    """And what the snapshot holds stays consistent: the same verdict, the same causes in their order."""
    cases = recorded()
    assert len(cases) == RECORDED
    for name, raw, pod, key in cases:
        recorder, manifest = Recorder(), Recorder()
        for index, item in enumerate(raw["items"]):
            recorder.add(copy.deepcopy(item), Place("test", item=index))
        if pod:
            manifest.add({"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(pod)}, Place("pod"))
        items, asked = recorder.items(), manifest.items()
        anonymizer = Anonymizer([*items, *asked], "seed")
        changed, changed_asked = ([anonymizer.item(item) for item in each] for each in (items, asked))
        new = (anonymizer.namespace(key[0]), anonymizer.names()["pod"][key[1]])
        before = recorder.build()
        ours = ask(before, built(asked) if pod else None, "pod", key, before)
        theirs = ask(built(changed), built(changed_asked) if pod else None, "pod", new, before)
        for one, other in zip(ours, theirs, strict=True):
            assert (one.verdict, [found.kind.code for found in one.findings]) == (
                other.verdict,
                [found.kind.code for found in other.findings],
            ), name
        assert disagreements(before, built(changed)) == [], name


CANARY = "Kzqwxvj"
# What is decided by its very words, and would be refused otherwise before anything is replaced.
READ_AS_SOMETHING_ELSE = re.compile(r"apiVersion|kind")
AMOUNT = re.compile(r"[0-9.]+(m|k|[KMGT]i?)?")


def marked(value: Any, key: str = "", *, keys: bool = False) -> Any:
    """The value with a canary in every text; with ``keys``, in the keys of maps that strangers name, too."""
    if isinstance(value, dict):
        named = keys and key in MAPS
        return {f"{name}{CANARY}" if named else name: marked(each, name, keys=keys) for name, each in value.items()}
    if isinstance(value, list):
        return [marked(each, key, keys=keys) for each in value]
    if not isinstance(value, str) or READ_AS_SOMETHING_ELSE.fullmatch(key) or AMOUNT.fullmatch(value):
        return value
    if key == "expression":
        return f'{value} && device.attributes["{CANARY}.com"].{CANARY} == "{CANARY}" // {CANARY}'
    return f"{value}-{CANARY}" if "/" not in value else f"{value.replace('/', f'-{CANARY}/')}.{CANARY}"


MAPS = frozenset(
    (
        *("labels", "annotations", "nodeSelector", "matchLabels", "attributes", "capacity", "counters", "requests"),
        *("limits", "allocatable", "hard", "used", "consumedCapacity", "overhead", "allocatedResources"),
    )
)


def every_kind() -> list[Json]:
    """The objects of all examples and cases: together, each kind with about every field that is kept."""
    found = [
        item
        for path in EXAMPLES
        for file in sorted(path.glob("cluster*"))
        for item in record_files([str(file)]).items()
    ]
    return [*found, *(copy.deepcopy(item) for case in explain_cases.CASES for item in case.objects)]


@pytest.mark.parametrize("keys", [False, True])
def test_no_canary_survives(keys: bool) -> None:
    """In every text of every kind, in names of labels, attributes and resources, and in literals of selectors."""
    done: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for item in every_kind():
        recorder = Recorder()
        tried[item["kind"]] += 1
        try:
            recorder.add(marked(item, keys=keys), Place("test"))
        except InputError:
            # Such as the time of a pod's start, which no reader accepts otherwise.
            continue
        items = recorder.items()
        try:
            anonymizer = Anonymizer(items, "seed")
            changed = [anonymizer.item(entry) for entry in items]
        except InputError:
            continue
        done[item["kind"]] += 1
        text = json.dumps(changed)
        assert CANARY.lower() not in text.lower(), text[max(0, text.lower().index(CANARY.lower()) - 300) :][:400]
    assert len(done) > 15 and all(done[kind] > tried[kind] / 2 for kind in tried), (done, tried)


TABLES = (Field, Behaviour)
"""Rows of our own tables, whose fields are in no object."""


def test_what_the_api_calls_its_fields_is_known() -> None:
    """The last check replaces every word that it does not know: it has to know the fields of every kind."""
    names = {name for struct in dra_fields._STRUCTS.values() for name in struct}
    for module in pkgutil.iter_modules(api.__path__):
        for value in vars(importlib.import_module(f"{api.__name__}.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, msgspec.Struct) and value not in TABLES:
                names.update(value.__struct_encode_fields__)
    assert len(names) > 300
    assert [name for name in sorted(names) if not is_harmless(name)] == []


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("NVIDIA H100 80GB HBM3", True),
        ("gpu.nvidia.com", True),
        ("driverVersion", True),
        ("numCPUs", True),
        ("570.86.15", True),
        ("10.1.2.3", False),
        ("A1B2C3D4", False),
        ("20240117", False),
        ("acmeGPU", False),
        ("gpu.corp.example", False),
        ("gpu\u200b", False),
        ("gpu\x1b[31m", False),
        ("großer", False),
    ],
)
def test_what_is_harmless(text: str, stays: bool) -> None:
    assert is_harmless(text) == stays


@pytest.mark.parametrize("driver", sorted(catalogue().drivers))
def test_what_a_driver_calls_its_products_stays(driver: str) -> None:
    """What is known of a product is found by its name."""
    known = catalogue().drivers[driver]
    assert [name for name in (*known.product_names, *known.mig_profiles) if not is_harmless(name)] == []


def test_what_layers_call_their_states_stays() -> None:
    """A reason or version that is replaced in a copy is not understood there."""
    folder = Path(kubectl_dra.__file__).parent
    files = [*(folder / "neighbours").glob("*.py"), *(folder / "explain/causes").glob("*.py")]
    words = {
        word for file in files for word in re.findall(r'"([A-Z][a-z]+(?:[A-Z][a-zA-Z]+)*)"', file.read_text("utf-8"))
    }
    assert "Inadmissible" in words
    kinds = [(kind.group, *kind.versions) for kind in NEIGHBOUR_KINDS.values()]
    assert [word for word in (*words, *(part for kind in kinds for part in kind)) if not is_harmless(word)] == []


def test_what_a_snapshot_says_of_itself_is_clean() -> None:
    items = [claim_of("true")]
    anonymizer = Anonymizer(items, "seed")
    text = f"{CANARY} at https://{CANARY}.corp/x?token={CANARY} for acme-train, jane@{CANARY}.com in acme-ml"
    shown = anonymizer.said(
        {"notes": [text], "gaps": [{"kind": CANARY, "reason": CANARY, "detail": text, "namespace": CANARY}]}
    )
    assert CANARY.lower() not in json.dumps(shown).lower() and "acme" not in json.dumps(shown)
    assert shown["notes"] == ["… at … for claim-1, someone in namespace-1"]


CASES = [
    case
    for case in explain_cases.QUICK_CASES
    if case.raw.get("explain", "").startswith(("pod/", "claim/")) and "manifest" not in case.raw
]


NOT_THE_SAME = (
    "kueue-rejected: its release will refuse the claim, and has said nothing yet",
    "no-scale-up: every group has a node already, whose devices it knows",
)
"""Cases in which the answer needs what runs in the pod of Kueue, or the status of cluster-autoscaler. A copy keeps
nothing of them: arguments and texts hold anything."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}: {case.name}")
def test_explain_says_the_same_of_every_cause(case: explain_cases.Case) -> None:
    recorder = Recorder()
    before_builder = SnapshotBuilder()
    for index, entry in enumerate(case.objects):
        recorder.add(copy.deepcopy(entry), Place("case", item=index))
        before_builder.add(copy.deepcopy(entry), Place("case", item=index))
    items, head, before = recorder.items(), said(recorder.build()), before_builder.build()
    kind, name = case.raw["explain"].split()[0].split("/")
    table = {"pod": before.pods, "claim": before.claims}[kind]
    if ("default", name) not in table:
        pytest.skip("asks for an object that is not there")
    anonymizer = Anonymizer(items, "seed")
    after = built([anonymizer.item(item) for item in items], anonymizer.said(head)["gaps"])
    ours = ask(before, None, kind, ("default", name), before)
    theirs = ask(after, None, kind, ("default", anonymizer.names()[kind][name]), before)
    same = [summary(one) for one in theirs] == [summary(one) for one in ours]
    assert same == (f"{case.file}: {case.name}" not in NOT_THE_SAME)


def slice_of(devices: list[Json], **spec: Any) -> Json:
    pool = {"name": "rack7-n12.corp.example", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "rack7-n12.corp.example-gpu-x", "uid": "c55f6e3a-8a1d-44c5-97d5-0f1b5a3a1a11"},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": "rack7-n12.corp.example", "devices": devices, **spec},
    }


def claim_of(expression: str, name: str = "acme-train") -> Json:
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": "acme-gpus", "selectors": [{"cel": {"expression": expression}}]},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "acme-ml"},
        "spec": {"devices": {"requests": [request]}},
    }


GPU: Json = {
    "name": "rack7-n12.corp.example-gpu-0",
    "attributes": {
        "productName": {"string": "NVIDIA H100"},
        "uuid": {"string": UUID},
        "serialNumber": {"int": 1654123456789},
        "serial": {"string": "SN12345XK"},
        "pcieRoot": {"string": "pci0000:16"},
        "address": {"string": "192.168.17.4"},
        "hwAddress": {"string": "0a:58:a9:fe:01:7f"},
        "gid": {"string": "fe80::a58:a9ff:fefe:17f"},
        "driverVersion": {"version": "570.86.15"},
        "host": {"string": "rack7-n12.corp.example"},
    },
    "capacity": {"memory": {"value": "80Gi"}},
}
ATTRIBUTE = f'device.attributes["{DRIVER}"]'
SELECTORS = (
    f'{ATTRIBUTE}.uuid == "{UUID}"',
    f"{ATTRIBUTE}.uuid in ['GPU-other', '{UUID}']",
    f"{ATTRIBUTE}.serialNumber == 1654123456789",
    f'{ATTRIBUTE}.serial == "SN12345XK" // the one that acme bought',
    f'{ATTRIBUTE}.productName.contains("H100") && device.driver == "{DRIVER}"',
    f'{ATTRIBUTE}.host == r"rack7-n12.corp.example"',
    f'{ATTRIBUTE}.uuid == "GPU-00000000-1111-2222-3333-444444444444"',
)


@pytest.mark.parametrize("expression", SELECTORS)
def test_selectors_follow_the_values(expression: str) -> None:
    items = [slice_of([GPU]), claim_of(expression)]
    anonymizer = Anonymizer(items, "seed")
    changed = [anonymizer.item(item) for item in items]
    assert disagreements(built(items), built(changed)) == []
    text = json.dumps(changed)
    for secret in (
        UUID,
        "1654123456789",
        "SN12345XK",
        "rack7",
        "corp.example",
        "acme",
        "192.168",
        "a58",
        "0a:58:a9",
        "0000:16",
    ):
        assert secret not in text
    for kept in ("NVIDIA H100", "570.86.15", DRIVER, "80Gi", "uuid"):
        assert kept in text


def test_a_selector_that_reads_part_of_a_value_is_told() -> None:
    items = [slice_of([GPU]), claim_of(f'{ATTRIBUTE}.uuid.startsWith("GPU-8f2c5a3e")')]
    anonymizer = Anonymizer(items, "seed")
    told = disagreements(built(items), built(anonymizer.item(item) for item in items))
    assert len(told) == 1 and "acme-ml/acme-train" in told[0] and "1 devices" in told[0]


def test_the_seed_decides_and_nothing_else() -> None:
    items = [slice_of([GPU]), claim_of(SELECTORS[0])]
    one, same, other = (Anonymizer(items, seed).item(items[0]) for seed in ("a", "a", "b"))
    assert one == same
    assert one["spec"]["devices"][0]["attributes"]["uuid"] != other["spec"]["devices"][0]["attributes"]["uuid"]


def test_a_pod_and_what_belongs_to_it() -> None:
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "acme-train-0",
            "namespace": "acme-ml",
            "uid": "5c1e2a7b-98f1-4f0e-a4c5-3b7c1d2e4f50",
            "finalizers": ["foregroundDeletion"],
        },
        "spec": {
            "nodeSelector": {"acme.example/zone": "berlin", "kubernetes.io/os": "linux", "acme.example/fast": "true"},
            "schedulerName": "acme-scheduler",
            "containers": [{"name": "acme", "resources": {"limits": {"acme.example/gpu": "1", "cpu": "2"}}}],
            "tolerations": [{"key": "acme.example/team", "operator": "Equal", "value": "vision"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "acme-train"}],
            "newField": {"acme": "acme"},
        },
    }
    event: Json = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "acme-train-0.17f", "namespace": "acme-ml"},
        "involvedObject": {"kind": "Pod", "namespace": "acme-ml", "name": "acme-train-0"},
        "reason": "FailedScheduling",
        "message": 'pod "acme-train-0" needs acme-ml/acme-train: User "jane@corp.example" at https://acme.corp.example',
    }
    pulling = {**event, "metadata": {"name": "b", "namespace": "acme-ml"}, "reason": "Pulled"}
    pulling["message"] = "pulled registry.acme/secret"
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n12",
            "labels": {
                "kubernetes.io/hostname": "n12",
                "acme.example/zone": "berlin",
                "kubernetes.io/os": "linux",
                "nvidia.com/gpu.product": "NVIDIA-H100",
                "acme.example/fast": "true",
            },
        },
        "spec": {"taints": [{"key": "acme.example/team", "value": "vision", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"acme.example/gpu": "4", "cpu": "8"}},
    }
    items = [pod, event, pulling, node, claim_of("true")]
    anonymizer = Anonymizer(items, "seed")
    changed = [anonymizer.item(item) for item in items]
    text = json.dumps(changed)
    for secret in ("acme", "jane", "corp", "berlin", "vision", "registry", "foreground"):
        assert secret not in text, secret
    spec, labels = changed[0]["spec"], changed[3]["metadata"]["labels"]
    assert spec["nodeSelector"].items() <= labels.items()
    assert labels["kubernetes.io/hostname"] == changed[3]["metadata"]["name"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100" and labels["kubernetes.io/os"] == "linux"
    assert spec["tolerations"][0]["key"] == changed[3]["spec"]["taints"][0]["key"]
    assert set(spec["containers"][0]["resources"]["limits"]) == set(changed[3]["status"]["allocatable"])
    assert spec["resourceClaims"][0]["resourceClaimName"] == changed[4]["metadata"]["name"]
    assert changed[1]["message"].startswith(f'pod "{changed[0]["metadata"]["name"]}" needs ')
    assert changed[2]["message"] == ""
    # That there is an unknown field can decide, what it says cannot.
    assert "newField" in spec


def renamed_devices(names: list[str]) -> tuple[list[str], dict[str, str], list[Json]]:
    """What devices of these names are called in a copy, what the names file says of them, and their attributes."""
    bus_id = {"attributes": {"resource.kubernetes.io/pciBusID": {"string": "0000:aa:00.0"}}}
    items = [slice_of([{"name": name, **bus_id} for name in names])]
    anonymizer = Anonymizer(items, "seed")
    devices = anonymizer.item(items[0])["spec"]["devices"]
    return [device["name"] for device in devices], anonymizer.names().get("device", {}), devices


def test_names_of_devices_keep_their_form_and_are_in_the_names_file() -> None:
    regular = ["gpu-0", "gpu-0-mig-1g5gb-0", "gpu-0-mig-1g5gb-19-0", "ens5f0np0", "nvme0n1", "cpudevnuma001", "ccx-3"]
    renamed, said_names, _ = renamed_devices(regular)
    assert renamed == regular and said_names == {}
    by_address = [
        "0000-aa-00-0",
        "gpu-0000-aa-00-0",
        "pci-0000-aa-00-1",
        "0000-3b-00-0-0x56a0",
        "acme-gpu-7",
        "c12b-00-00-0",
    ]
    renamed, said_names, devices = renamed_devices(by_address)
    assert said_names == dict(zip(by_address, renamed, strict=True)) and len({*renamed}) == len(renamed)
    bus = renamed[0].split("-")[1]
    assert bus != "aa" and int(bus, 16) < 256
    assert renamed[:3] == [f"0000-{bus}-00-0", f"gpu-0000-{bus}-00-0", f"pci-0000-{bus}-00-1"]
    assert re.fullmatch(r"0000-[0-9a-f]{2}-00-0-0x56a0", renamed[3]) and renamed[3][5:7] not in (bus, "3b")
    assert re.fullmatch(r"[a-z]{4}-gpu-7", renamed[4]) and renamed[4] != "acme-gpu-7"
    assert re.fullmatch(r"[0-9a-f]{4}-[0-9a-f]{2}-00-0", renamed[5]) and renamed[5][:4] != "c12b"
    # The device is where its attribute says, too.
    assert devices[0]["attributes"]["resource.kubernetes.io/pciBusID"] == {"string": f"0000:{bus}:00.0"}


def test_addresses_stay_different_on_every_bus() -> None:
    names = [f"0000-{bus:02x}-00-0" for bus in range(256)]
    renamed, said_names, _ = renamed_devices(names)
    assert {*renamed} == {*names} and len(said_names) == 256


def driver_pod(container: Json, owner: str) -> Json:
    owners = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner, "uid": "u", "controller": True}]
    registry = {"name": "r", "hostPath": {"path": f"/var/lib/{CANARY}/kubelet/plugins_registry"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plugin-x", "namespace": "acme", "ownerReferences": owners},
        "spec": {
            "nodeName": "rack7-n12.corp.example",
            "containers": [{"name": "gpus", **container}],
            "volumes": [registry],
        },
    }


@pytest.mark.parametrize(
    ("variable", "gates"),
    [
        (
            f"TimeSlicingSettings=true,{CANARY}=true,MPSSupport=False",
            {"TimeSlicingSettings": True, "MPSSupport": False},
        ),
        (f"TimeSlicingSettings={CANARY},DynamicMIG=true", {"DynamicMIG": True}),
        (CANARY, {}),
    ],
)
def test_gates_of_drivers_that_we_know_stay_and_nothing_else(variable: str, gates: dict[str, bool]) -> None:
    container = {
        "image": f"registry.{CANARY}.corp/{CANARY}/gpu-kubelet-plugin:v25.12.1-{CANARY}",
        "command": ["bash", "-c", CANARY],
        "args": [f"--driver-mode={CANARY}", f"--token={CANARY}"],
        "env": [{"name": "FEATURE_GATES", "value": variable}, {"name": "MODE", "value": CANARY}],
    }
    recorder = Recorder()
    recorder.add(driver_pod(container, f"{CANARY}-dra-driver"), Place("test"))
    recorder.add(slice_of([{"name": "gpu-0"}], driver="gpu.nvidia.com"), Place("test", item=1))
    items = recorder.items()
    anonymizer = Anonymizer(items, "seed")
    changed = [anonymizer.item(item) for item in items]
    assert CANARY.lower() not in json.dumps(changed).lower()
    (row,) = joined(built(changed)).rows
    assert row.pod is not None and (row.driver, row.pod.version) == ("gpu.nvidia.com", "v25.12.1")
    assert dict(row.pod.gates) == gates


def test_a_copy_knows_where_a_driver_has_to_run() -> None:
    """A node that its DaemonSet leaves out lacks no pod."""
    selector = {"acme.example/gpus": "yes"}
    container = {"name": "gpus", "image": f"{CANARY}/gpu-kubelet-plugin:v25.12.0", "args": [CANARY]}
    spec = {"nodeSelector": selector, "containers": [container]}
    daemon: Json = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "dra-driver", "namespace": "nv"}}
    daemon |= {"spec": {"template": {"spec": spec}}, "status": {"desiredNumberScheduled": 1}}
    nodes: list[Json] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {}}
        for name, labels in (("rack7-n12.corp.example", selector), ("n13", {"nvidia.com/gpu.present": "true"}))
    ]
    recorder = Recorder()
    pod = driver_pod({**container, "env": []}, "dra-driver")
    pod["metadata"]["namespace"] = "nv"
    for index, item in enumerate([daemon, pod, *nodes, slice_of([{"name": "gpu-0"}], driver="gpu.nvidia.com")]):
        recorder.add(item, Place("test", item=index))
    items = recorder.items()
    anonymizer = Anonymizer(items, "seed")
    changed = [anonymizer.item(item) for item in items]
    assert CANARY.lower() not in json.dumps(changed).lower()
    states = [sorted((row.driver, row.state) for row in joined(built(each)).rows) for each in (items, changed)]
    assert states[0] == states[1] and len(states[0]) > 0


def test_of_parameters_stays_what_needs_a_gate() -> None:
    parameters = {"apiVersion": CANARY, "kind": CANARY, "sharing": {"strategy": "MPS", CANARY: CANARY}, "x": CANARY}
    claim = claim_of("true")
    claim["spec"]["devices"]["config"] = [{"opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}]
    (config,) = Anonymizer([claim], "seed").item(claim)["spec"]["devices"]["config"]
    assert config["opaque"]["parameters"] == {"left-out": True, "sharing": {"strategy": "MPS"}}


def test_order_of_names_is_kept() -> None:
    numbers = random.Random(7)
    names = [f"{numbers.choice('abc')}{numbers.randrange(1000)}" for _ in range(300)]
    pseudonyms = Pseudonyms("seed")
    for name in names:
        assert pseudonyms.of("node", name) == name
    pseudonyms.freeze()
    unique = sorted(set(names))
    assert [pseudonyms.of("node", name) for name in unique] == sorted({pseudonyms.of("node", name) for name in names})


def test_pools_stay_in_order_when_their_nodes_names_do_not_help() -> None:
    """node-1 of the pool a-1 sorts before node-2 of 0-z, as before."""
    pools = ["n1", "n1-b", "n1-fabric", "fabric", "z"]
    pseudonyms = Pseudonyms("seed")
    for name in pools:
        pseudonyms.of("pool", name)
    for name in ("n1", "n1-b"):
        pseudonyms.of("node", name)
    pseudonyms.freeze()
    pseudonyms.settle("pool", pseudonyms.embedded)
    renamed = [pseudonyms.of("pool", name) for name in sorted(pools)]
    assert renamed == sorted(renamed) and len(set(renamed)) == len(pools)
    assert not any("n1" in name for name in renamed)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("GPU-8f2c5a3e-1b7d-4c21-9a10-2f4be1f0c7aa", True),
        ("10.1.2.3", True),
        ("0a:58:a9:fe:01:7f", True),
        ("fe80::1", True),
        ("n12-gpu-0", True),
        ("0000:18:00.0", True),
        ("pci0000:16", True),
        ("570.86.15", False),
        ("NVIDIA H100 80GB HBM3", False),
        ("n123", False),
        ("1g.10gb", False),
    ],
)
def test_what_counts_as_an_identity(text: str, changed: bool) -> None:
    pseudonyms = Pseudonyms("seed")
    pseudonyms.of("node", "n12")
    pseudonyms.freeze()
    assert (pseudonyms.embedded(text) != text) == changed


def test_messages_keep_their_own_words() -> None:
    pseudonyms = Pseudonyms("seed")
    for category, name in (("quota", "quota"), ("pod", "gang"), ("namespace", "acme")):
        pseudonyms.of(category, name)
    pseudonyms.freeze()
    pseudonyms.words(("quota", "pod", "namespace"))
    assert pseudonyms.text("exceeded quota: quota in acme/x") == "exceeded quota: quota in namespace-1/x"


def test_yaml_of_an_example_is_read_back(tmp_path: Path) -> None:
    items = record_files([str(EXAMPLES[0] / "cluster.yaml")]).items()
    anonymizer = Anonymizer(items, "seed")
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump_all([anonymizer.item(item) for item in items]))
    assert len(record_files([str(path)]).items()) == len(items)
