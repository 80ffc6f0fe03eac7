"""What ``--with-node`` refuses, and what it proposes in place of that."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLES, Dra, Ran
from tests.cli.test_explain_with_node import FULL, JSON, of_example, pending
from tests.fit.worlds import CLASS, node, write_cluster

WITH = "--with-node"


def said(ran: Ran) -> str:
    return " ".join(ran.err.split())


def proposed(ran: Ran) -> list[str]:
    """The values of the flag in the commands that an error proposes."""
    lines = [line.partition(": kubectl dra ")[2] for line in ran.err.splitlines() if ": kubectl dra " in line]
    return [words[words.index(WITH) + 1] for words in map(shlex.split, lines)]


@pytest.mark.parametrize(
    ("example", "words", "asks", "lacking", "like"),
    [
        ("compute-domain-one-per-node", "4xGB200", ("pod/nccl-0", "-n", "ml"), "compute-domain.nvidia.com", "gb200-1"),
        ("nic-gpu-pcie-root", "8xH100", (), "dra.net", "dgx-1"),
    ],
)
def test_words_say_nothing_of_another_driver(
    dra: Dra, example: str, words: str, asks: tuple[str, ...], lacking: str, like: str
) -> None:
    """Where the claims need devices of two, no answer about one means anything."""
    asks = asks or ("-f", str(EXAMPLES / example / "manifest.yaml"))
    ran = of_example(dra, example, *asks, WITH, words)
    assert (ran.code, proposed(ran)) == (2, [like])
    assert f"need devices of {lacking} too" in said(ran) and "of which words say nothing" in said(ran)
    assert of_example(dra, example, *asks, WITH, like).code in (0, 1)


def test_an_example_is_of_the_kind_that_is_asked_for(dra: Dra) -> None:
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    ran = of_example(dra, "mig-profile-missing", *asks, WITH, "8xH100")
    assert (ran.code, proposed(ran)) == (2, ["8xH100,type=mig,profile=3g.40gb"])
    assert of_example(dra, "mig-profile-missing", *asks, WITH, *proposed(ran)).code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("8xA100,type=mig,profile=3g.40gb", "NVIDIA A100-SXM4-40GB has no profile 3g.40gb; its profiles are 1g.5gb, "),
        ("8xH200", "read profile of devices"),
        ("8xL4", "read profile of devices"),
        ("8xL4,type=mig,profile=3g.40gb", "NVIDIA L4 has no partitions (MIG)"),
    ],
)
def test_partitions_are_those_of_the_product(dra: Dra, words: str, told: str) -> None:
    """What a GPU cannot be cut into is neither taken nor proposed."""
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    ran = of_example(dra, "mig-profile-missing", *asks, WITH, words)
    assert ran.code == 2 and told in said(ran)
    first = proposed(ran)[0]
    assert first.startswith("product=NVIDIA A100 80GB PCIe,devices=8,type=mig,profile=")
    assert of_example(dra, "mig-profile-missing", *asks, WITH, first).code == 0


def test_other_products_of_the_name_have_the_partition(dra: Dra) -> None:
    asks = ("-f", str(EXAMPLES / "mig-profile-missing" / "manifest.yaml"))
    assert of_example(dra, "mig-profile-missing", *asks, WITH, "8xH100,type=mig,profile=3g.40gb").code == 0


def new_node(change: JSON) -> str:
    made = node("new", 1)
    made[1]["spec"] |= change
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": made})


@pytest.mark.parametrize("command", ["explain", "fit"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"drivr": "gpu.example.com"}, "spec.drivr: there is no field 'drivr' here; did you mean 'driver'?"),
        ({"driver": ""}, "spec.driver: must be set"),
        ({"devices": [{"name": "GPU_0"}]}, "spec.devices[0].name: "),
    ],
)
def test_what_no_server_stores_is_no_node(dra: Dra, tmp_path: Path, command: str, change: JSON, told: str) -> None:
    (tmp_path / "new.json").write_text(new_node(change))
    pod = pending()[1]
    del pod["spec"]["resourceClaims"], pod["spec"]["containers"][0]["resources"]
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL])
    files = ("-f", str(tmp_path / "pod.json"), "--snapshot", str(tmp_path / "cluster.json"))
    ran = dra(command, *files, WITH, str(tmp_path / "new.json"))
    assert ran.code == 2 and f"ResourceSlice new is not valid: {told}" in said(ran)
    (tmp_path / "new.json").write_text(new_node({}))
    assert dra(command, *files, WITH, str(tmp_path / "new.json")).code == 0


@pytest.mark.parametrize("typed", ["trn1.32xlarge", "m5.metal", "n1-standard-8", "Standard_D4s_v5"])
def test_a_machine_type_that_is_not_known_is_called_one(dra: Dra, typed: str) -> None:
    ran = of_example(dra, "no-device-matches", "pod/train-0", "-n", "ml", WITH, typed)
    assert (ran.code, proposed(ran)) == (2, ["gpu-1"])
    assert "as a machine type it is not in the catalogue: write which devices it has (8xH100), or a file" in said(ran)


def test_which_number_is_looked_for_can_be_pasted(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "pod.json").write_text(json.dumps(pending()[1]))
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *node("gpu-1", 1), pending()[0]])
    files = ("-f", str(tmp_path / "pod.json"), "--snapshot", str(tmp_path / "cluster.json"))
    ran = dra("fit", *files, WITH, "gpu-0", WITH, "gpu-1")
    assert ran.code == 2 and f"{WITH} gpu-0 {WITH} gpu-1,count=1" in ran.err
    assert dra("fit", *files, WITH, "gpu-0", WITH, "gpu-1,count=1").code == 0


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("driver=gpu.example.com,device=8", "driver=gpu.example.com,devices=8"),
        ("gpu-0,labels:zone=c", "gpu-0,label:zone=c"),
        ("a3-highgpu-9g", "a3-highgpu-8g"),
        ("a2-highgpu-3g", "a2-highgpu-2g"),
        ("8xFOO", "driver=gpu.example.com,devices=8"),
        ("devices=1", "driver=gpu.example.com,devices=1"),
        ("count=3", "driver=gpu.example.com,devices=8,count=3"),
    ],
)
def test_what_is_proposed_is_near_and_of_the_cluster(dra: Dra, tmp_path: Path, typed: str, instead: str) -> None:
    write_cluster(tmp_path / "cluster.json", [CLASS, *FULL, *pending()])
    ran = dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, typed)
    assert (ran.code, proposed(ran)) == (2, [instead])
    assert dra("explain", "pod/train", "--snapshot", str(tmp_path / "cluster.json"), WITH, instead).code in (0, 1)


def test_of_a_driver_that_is_there_no_other_one_is_meant(dra: Dra, tmp_path: Path) -> None:
    there = json.loads(json.dumps([*FULL, *pending()]).replace("gpu.example.com", "nic.example.com"))
    write_cluster(tmp_path / "cluster.json", [CLASS, *there])
    files = ("--snapshot", str(tmp_path / "cluster.json"))
    ran = dra("explain", "pod/train", *files, WITH, "driver=nic.example.com,devices=2")
    assert (ran.code, proposed(ran)) == (2, ["gpu-0"]) and "did you mean" not in ran.err
