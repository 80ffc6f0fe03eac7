"""Bad input gets one clear sentence and the documented exit code; never a traceback, never a hang."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.conftest import EXAMPLES, Dra, Ran, cluster_of

CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "n1-gpu"},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "A100"}}}],
    },
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def claim(selector: str = "", name: str = "gpus", **request: Any) -> dict[str, Any]:
    exactly: dict[str, Any] = {"deviceClassName": "gpu", **request}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def snapshot(folder: Path, *objects: dict[str, Any], name: str = "cluster.yaml") -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects))
    return str(path)


def sentence(ran: Ran) -> str:
    """The one line on stderr, but for a command that helps."""
    lines = [line for line in ran.err.strip().splitlines() if not line.startswith("Names: kubectl ")]
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("error: ")
    return lines[0]


FILES = {
    "broken YAML": ("spec:\n  a: [1, 2\nb: }\n", "cluster.yaml:3"),
    "a Helm template": ("apiVersion: v1\nkind: {{ .Values.kind }}\n", "helm template"),
    "an empty file": ("", "cluster.yaml"),
    "only comments": ("# nothing\n", "cluster.yaml"),
    "binary": ("\x00\x01\x02", "cluster.yaml"),
    "a scalar": ("42\n", "cluster.yaml"),
    "a list": ("- a\n- b\n", "cluster.yaml"),
    "no kind": ("apiVersion: v1\nmetadata: {name: x}\n", "kind"),
    "broken JSON": ('{"kind": "List", "items": [', "cluster.yaml"),
}


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_no_snapshot(dra: Dra, tmp_path: Path, what: str) -> None:
    text, expected = FILES[what]
    (tmp_path / "cluster.yaml").write_text(text)
    ran = dra("explain", "claim/gpus", "--snapshot", "cluster.yaml")
    assert ran.code == 2 and not ran.out
    assert expected in sentence(ran)


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_no_new_node(dra: Dra, tmp_path: Path, what: str) -> None:
    path = snapshot(tmp_path, NODE, SLICE, CLASS, claim(), name="there.yaml")
    (tmp_path / "cluster.yaml").write_text(FILES[what][0])
    ran = dra("explain", "claim/gpus", "--snapshot", path, "--with-node", str(tmp_path / "cluster.yaml"))
    assert ran.code == 2 and not ran.out
    assert f'--with-node "{tmp_path / "cluster.yaml"}"' in sentence(ran)


def test_a_file_that_does_not_exist(dra: Dra) -> None:
    ran = dra("explain", "claim/gpus", "--snapshot", "missing.yaml")
    assert ran.code == 2 and "missing.yaml" in sentence(ran)


def test_an_unreadable_quantity_and_a_wrong_type_name_the_field(dra: Dra, tmp_path: Path) -> None:
    broken = {**SLICE, "spec": {**SLICE["spec"], "devices": "gpu-0"}}  # type: ignore[dict-item]
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, broken, CLASS, claim()))
    assert ran.code == 2 and "n1-gpu" in sentence(ran) and "devices" in sentence(ran)
    bad = claim(capacity={"requests": {"memory": "lots"}})
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, SLICE, CLASS, bad))
    assert ran.code == 2 and "gpus" in sentence(ran)


def pod(name: str, node: str = "", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/none"}]
    spec = {"containers": containers, **({"nodeName": node} if node else {}), **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_a_pod_whose_selector_no_server_would_store(dra: Dra, tmp_path: Path) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": "Bogus", "values": ["x"]}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    excluding = pod("other", "n1", affinity={"podAntiAffinity": required})
    node = {**NODE, "status": {"allocatable": {"pods": "110"}}}
    using: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}]}
    path = snapshot(tmp_path, node, SLICE, CLASS, claim(), pod("fine", **using), excluding)
    ran = dra("explain", "pod/fine", "--snapshot", path, "--complete")
    assert ran.code == 0 and not ran.err

    constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"affinity": {"podAntiAffinity": required}}, "spec.affinity.podAntiAffinity.required"),
        ({"topologySpreadConstraints": [constraint]}, "spec.topologySpreadConstraints[0].labelSelector"),
    ]
    for spec, field in wrong:
        path = snapshot(tmp_path, node, SLICE, CLASS, claim(), pod("bad", **using, **spec))
        ran = dra("explain", "pod/bad", "--snapshot", path)
        assert ran.code == 2 and not ran.out
        assert field in sentence(ran) and "'Bogus' is not a valid operator" in sentence(ran)


def test_two_objects_of_one_name(dra: Dra, tmp_path: Path) -> None:
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, SLICE, CLASS, claim(), claim(count=2)))
    assert ran.code == 2 and "gpus" in sentence(ran) and "cluster.yaml" in sentence(ran)


def test_names_that_do_not_exist_show_the_nearest(dra: Dra, tmp_path: Path) -> None:
    path = snapshot(tmp_path, NODE, SLICE, CLASS, claim())
    ran = dra("explain", "claim/gpu", "--snapshot", path)
    assert ran.code == 2 and "did you mean gpus?" in sentence(ran)
    ran = dra("explain", "claim/gpus", "--snapshot", path, "--node", "n2")
    assert ran.code == 2 and "did you mean n1?" in sentence(ran)
    ran = dra("explain", "claim/gpus", "--snapshot", path, "--request", "gpuu")
    assert ran.code == 2 and "gpu" in sentence(ran)
    ran = dra("explain", "claim/gpus", "--snapshot", path, "--trace", "n1/gpu-9")
    assert ran.code == 2 and "n1/gpu-0" in sentence(ran)
    ran = dra("explain", "claim/gpus", "-n", "other", "--snapshot", path)
    assert ran.code == 2 and "namespace default" in sentence(ran)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", "--watch"], "pod/NAME"),
        (["explain", "pods"], "Write pod/NAME"),
        (["explain", "pods/a/b"], "pod/NAME"),
        (["explain", "service/n1"], "pod/NAME, claim/NAME, template/NAME, deployment/NAME, node/NAME, class/NAME"),
        (["explain", "claim/x", "--snapshot", "s", "--kubernetes-version", "banana"], "banana"),
        (["explain", "claim/x", "--snapshot", "s", "--kubernetes-version", "1.20"], "1.34"),
        (["explain", "claim/x", "--snapshot", "s", "--feature-gates", "DRAConsumableCapacity"], "GATE=true"),
        (
            ["explain", "claim/x", "--snapshot", "s", "--feature-gates", "DRAConsumableCapacities=true"],
            "DRAConsumableCapacity",
        ),
        (["explain", "claim/x", "--request-timeout", "soon"], "soon"),
    ],
)
def test_wrong_usage(dra: Dra, tmp_path: Path, words: list[str], expected: str) -> None:
    (tmp_path / "s").write_text(yaml.safe_dump_all([SLICE, CLASS, claim(name="x")]))
    ran = dra(*words)
    assert ran.code == 2 and expected in sentence(ran)


@pytest.mark.parametrize("words", [["explain", "claim/x", "--no-such-flag"], ["explain", "-o", "xml"], ["explan"]])
def test_unknown_words_are_usage_errors(dra: Dra, words: list[str]) -> None:
    ran = dra(*words)
    assert ran.code == 2 and not ran.out


def test_half_a_snapshot_is_undetermined(dra: Dra, tmp_path: Path) -> None:
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, NODE, CLASS, claim()))
    assert ran.code == 3 and "there is no ResourceSlice in what was read" in ran.out
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, NODE, SLICE, claim()))
    assert ran.code == 3 and "there is no DeviceClass in what was read" in ran.out


def test_an_unknown_api_version_is_undetermined(dra: Dra, tmp_path: Path) -> None:
    newer = {**SLICE, "apiVersion": "resource.k8s.io/v2"}
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, NODE, newer, CLASS, claim()))
    assert ran.code == 3 and "resource.k8s.io/v2" in ran.out


def test_a_field_that_is_not_modelled_is_undetermined(dra: Dra, tmp_path: Path) -> None:
    asked = claim(fromTheFuture=[{"name": "a/b", "expression": "1"}])
    ran = dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, NODE, SLICE, CLASS, asked))
    assert ran.code == 3 and "fromTheFuture" in ran.out


HOSTILE = {
    "does not compile": "device.driver = 'x'",
    "unknown name": "devise.driver == 'x'",
    "deep nesting": "(" * 600 + "true" + ")" * 600,
    "many terms": " || ".join(["device.driver == 'x'"] * 3000),
    "nested loops": "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, "
    "device.attributes.all(d, device.attributes.all(e, a + b + c + d + e != '')))))",
    "growing text": "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, "
    "[1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, "
    "'aaaaaaaaaa'.replace('a', 'aaaaaaaaaa').size() > 0)))))",
    "backtracking regex": f"'{'a' * 60}!'.matches('^(a+)+$') || device.driver == 'x'",
    "a bad regex": "device.driver.matches('[')",
    "control characters": "device.driver == '\\u0000'",
    "not text": "\u202e\u2066device",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_selectors_end_quickly_with_an_answer(dra: Dra, tmp_path: Path, what: str) -> None:
    path = snapshot(tmp_path, NODE, SLICE, CLASS, claim(HOSTILE[what]))
    started = time.process_time()
    ran = dra("explain", "claim/gpus", "--snapshot", path)
    assert time.process_time() - started < 10
    assert ran.code in (0, 1, 3) and ran.out
    json_ran = dra("explain", "claim/gpus", "--snapshot", path, "-o", "json")
    assert json_ran.json["exitCode"] == ran.code


def test_no_kubeconfig(dra: Dra) -> None:
    ran = dra("explain", "pod/x")
    assert ran.code == 2 and "kubeconfig" in sentence(ran)


def kubeconfig(folder: Path, server: str) -> str:
    path = folder / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                "clusters": [{"name": "k", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    return str(path)


def test_a_malformed_kubeconfig_and_an_unknown_context(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("contexts: [")
    ran = dra("explain", "pod/x", "--kubeconfig", "bad")
    assert ran.code == 2 and "bad" in sentence(ran)
    ran = dra("explain", "pod/x", "--kubeconfig", kubeconfig(tmp_path, "http://127.0.0.1:1"), "--context", "prod")
    assert ran.code == 2 and "prod" in sentence(ran)


def test_a_connection_that_is_refused_or_silent(dra: Dra, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        config = kubeconfig(tmp_path, f"http://127.0.0.1:{port}")
        started = time.monotonic()
        ran = dra("explain", "pod/x", "--kubeconfig", config, "--request-timeout", "300ms")
        assert time.monotonic() - started < 8
        assert ran.code == 2 and str(port) in sentence(ran)
    ran = dra("explain", "pod/x", "--kubeconfig", kubeconfig(tmp_path, f"http://127.0.0.1:{port}"))
    assert ran.code == 2 and str(port) in sentence(ran)


def odd_slice(**device: Any) -> dict[str, Any]:
    return {**SLICE, "spec": {**SLICE["spec"], "devices": [{**SLICE["spec"]["devices"][0], **device}]}}  # type: ignore[dict-item,index]


ODD_SLICES: dict[str, dict[str, Any]] = {
    "a generation below zero": {
        **SLICE,
        "spec": {**SLICE["spec"], "pool": {"name": "n1", "generation": -1, "resourceSliceCount": 1}},  # type: ignore[dict-item]
    },
    "an attribute that is null": odd_slice(attributes={"a": None}),
    "a capacity with blanks around it": odd_slice(capacity={"x": {"value": "100 "}}, allowMultipleAllocations=True),
    "a capacity that is null": odd_slice(capacity={"x": None, "y": {"value": None}}, allowMultipleAllocations=True),
    "counters that are null": odd_slice(consumesCounters=[None, {"counterSet": "s", "counters": {"c": None}}]),
    "null among the devices": {**SLICE, "spec": {**SLICE["spec"], "devices": [None]}},  # type: ignore[dict-item]
    "taints that are null": odd_slice(taints=[None]),
}


@pytest.mark.parametrize("what", ODD_SLICES)
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_what_the_server_would_read_otherwise(dra: Dra, tmp_path: Path, what: str, suffix: str) -> None:
    path = snapshot(tmp_path, ODD_SLICES[what], CLASS, NODE, claim(capacity={"requests": {"x": " 1"}}))
    if suffix == "json":
        items = list(yaml.safe_load_all(Path(path).read_text()))
        path = str(tmp_path / "cluster.json")
        Path(path).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}) + " " * (1 << 21))
    for words in (["explain", "claim/gpus"], ["devices", "-o", "wide"], ["devices", "-o", "json"]):
        assert dra(*words, "--snapshot", path).code in (0, 1, 3)


@pytest.mark.parametrize("name", ["pool-incomplete", "devices-on-tainted-nodes", "different-reason-per-node"])
def test_a_supposed_selector_that_does_not_compile(dra: Dra, name: str) -> None:
    words = (EXAMPLES / name / "command").read_text().split()[2:-1]
    ran = dra(*words, cluster_of(name), "--what-if", "selector=foo")
    assert ran.code == 2 and "--what-if selector does not compile" in ran.err and not ran.out


@pytest.mark.parametrize(
    "repeated", [("device.driver in [", "'a{}',", "'']"), ("(", "device.driver == 'a{}' || ", "false)")]
)
def test_a_long_selector_is_laid_out_in_time(dra: Dra, tmp_path: Path, repeated: tuple[str, str, str]) -> None:
    first, middle, last = repeated
    selector = first + "".join(map(middle.format, range(9_000 // len(middle)))) + last
    began = time.monotonic()
    assert dra("explain", "claim/gpus", "--snapshot", snapshot(tmp_path, SLICE, CLASS, claim(selector))).code == 1
    assert time.monotonic() - began < 10
