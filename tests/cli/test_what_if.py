"""``explain --what-if``: what is wrong with a value is said of the flag, and a request can be named with its claim."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Dra
from tests.fit.worlds import CLASS, claim, node, write_cluster

JSON = dict[str, Any]
MODEL = 'device.attributes["gpu.example.com"].model'
WORDS = ("explain", "pod/train", "--snapshot", "cluster.yaml", "--kubernetes-version", "1.36", "--what-if")


def of_model(name: str, model: str, gpus: int) -> list[JSON]:
    """A node whose devices have a model."""
    made, published = node(name, gpus)
    for device in published["spec"]["devices"]:
        device["attributes"] = {"model": {"string": model}}
    return [made, published]


@pytest.fixture
def two_claims(dra: Dra, tmp_path: Path) -> Dra:
    """A pod with two claims, whose requests have one name and want the only H100."""
    claims = [claim("a"), claim("b")]
    for raw in claims:
        selectors = [{"cel": {"expression": f'{MODEL} == "H100"'}}]
        raw["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = selectors
    pod = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "train", "namespace": "default", "uid": "u-train"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}, {"name": "y"}]}}],
            "resourceClaims": [{"name": "x", "resourceClaimName": "a"}, {"name": "y", "resourceClaimName": "b"}],
        },
        "status": {"phase": "Pending"},
    }
    write_cluster(
        tmp_path / "cluster.yaml", [CLASS, *of_model("n1", "A100", 2), *of_model("n2", "H100", 1), *claims, pod]
    )
    return dra


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x:Foo", '"Foo" is no effect; write NoSchedule or NoExecute'),
        ("x:NoExecuteX", '"NoExecuteX" is no effect'),
        ("x:", '"" is no effect'),
        ("a/b/c", '"a/b/c" is no key of a taint'),
        ("-x=y:NoSchedule", '"-x" is no key of a taint'),
        ("x=y/z", '"y/z" is no value of a taint'),
        ("=y", "names no taint"),
    ],
)
def test_a_toleration_that_the_server_refuses(two_claims: Dra, value: str, said: str) -> None:
    ran = two_claims(*WORDS, f"toleration={value}")
    assert ran.code == 2 and not ran.out
    assert said in " ".join(ran.err.split())
    shared = two_claims("share", "--class", "gpu", "--tolerate", value, "--snapshot", "cluster.yaml")
    assert shared.code == 2 and said in " ".join(shared.err.split())


@pytest.mark.parametrize("value", ["x", "x=y", "example.com/x=y:NoExecute", "x:NoSchedule", ":NoExecute"])
def test_a_toleration_that_the_server_takes(two_claims: Dra, value: str) -> None:
    assert two_claims(*WORDS, f"toleration={value}").code == 1


@pytest.mark.parametrize("name", ["a/gpu", "x/gpu"])
def test_a_request_of_one_of_two_claims(two_claims: Dra, name: str) -> None:
    """By the name of the claim, or of the pod's entry for it."""
    other = f'{MODEL} == "A100"'
    assert "in request" not in two_claims(*WORDS, f"gpu:selector={other}").out
    assert two_claims(*WORDS, f"gpu:selector={other}").code == 0
    one = two_claims(*WORDS, f"{name}:selector={other}")
    assert one.code == 1 and "claim default/a, request" in one.out and "on n1; claim default/b" in one.flat
    assert two_claims(*WORDS, f"{name}:selector={other}", "--what-if", f"b/gpu:selector={other}").code == 0


def test_the_names_of_an_error_can_be_typed(two_claims: Dra) -> None:
    ran = two_claims(*WORDS, "c/gpu:count=1")
    assert ran.code == 2 and "there are: a/gpu, b/gpu" in " ".join(ran.err.split())


def test_a_printed_change_is_about_the_claim_of_its_fix(two_claims: Dra) -> None:
    out = two_claims(*WORDS[:-1], "--full").out
    commands = [line.split("$ ", 1)[1] for line in out.splitlines() if "$ kubectl dra explain" in line]
    assert any("a/gpu:selector" in command and "b/gpu:selector" in command for command in commands)
    for command in commands:
        assert two_claims(*shlex.split(command)[2:]).code == 0


def test_a_selector_that_does_not_compile(two_claims: Dra) -> None:
    ran = two_claims(*WORDS, f'gpu:selector={MODEL} = "A100"')
    assert ran.code == 2 and not ran.out
    assert ran.err.startswith("error: --what-if gpu:selector does not compile: = is no operator: write ==\n")


@pytest.mark.parametrize(("model", "code"), [("A100", 0), ("B200", 1)])
def test_a_mistyped_attribute_is_corrected_in_the_flag(two_claims: Dra, model: str, code: int) -> None:
    out = two_claims(*WORDS, f'gpu:selector={MODEL}l == "{model}"').out
    assert "kubectl get" not in out
    (command,) = [line.split("$ ", 1)[1] for line in out.splitlines() if "$ kubectl dra explain" in line]
    assert f'gpu:selector={MODEL} == "{model}"' in command and "modell" not in command
    assert two_claims(*shlex.split(command)[2:]).code == code


def test_an_attribute_that_nothing_resembles_is_looked_for_on_devices(two_claims: Dra) -> None:
    out = two_claims(*WORDS, f'gpu:selector={MODEL.replace("model", "zzz")} == "A100"').out
    assert "kubectl get" not in out and "$ kubectl dra devices -o wide" in out


@pytest.mark.parametrize(("change", "kind"), [("free", "ResourceClaim"), ("end", "Pod")])
def test_an_object_that_was_not_read_may_be_there(two_claims: Dra, tmp_path: Path, change: str, kind: str) -> None:
    words = ("explain", "claim/a" if kind == "Pod" else "pod/train", *WORDS[2:], f"{change}=other/x")
    known = two_claims(*words)
    assert known.code == 2
    assert "of that name" in known.err
    objects = json.loads((tmp_path / "cluster.yaml").read_text())["items"]
    write_cluster(tmp_path / "cluster.yaml", [item for item in objects if item["kind"] != kind], (kind,))
    ran = two_claims(*words)
    assert ran.code == 3, ran.err
    assert f"so whether there is a {kind} other/x is unknown" in ran.err


@pytest.mark.parametrize(("change", "already"), [("count=1", True), ("count=2", False), ("class=gpu", True)])
def test_a_change_to_what_is_asked_for_already(two_claims: Dra, change: str, already: bool) -> None:
    said = two_claims(*WORDS, change).out
    assert (f"supposed: {change}, which is asked for already" in said) is already
