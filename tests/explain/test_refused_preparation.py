"""A driver refuses what a pod has for a reason that is known: that reason is the fix, wherever a fix is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubectl_dra.drivers.drivers_on_nodes import joined
from kubectl_dra.explain.driver_refusals import mendings
from kubectl_dra.report.phrases import written
from tests.drivers.clusters import DRIVER, node, plugin, slices, snapshot_of
from tests.drivers.test_drivers_on_nodes import failing, waits
from tests.ran import ran

EXAMPLES = Path(__file__).parents[2] / "examples" / "explain"
PARTS = ("tpu-all-one-held", "pod/probe", "scratch", "gke-ml-v6e-pool-7b20d4c1-t2vd", "Ask for all devices of a node")
GATE = ("prepare-fails", "pod/ide-lea", "dev", "l40s-1", "featureGates.TimeSlicingSettings=true")
KNOWN = pytest.mark.parametrize(("folder", "pod", "namespace", "node", "fix"), (PARTS, GATE), ids=("part", "gate"))


def said(folder: str, *words: str) -> str:
    _, out, err = ran(*words, "--snapshot", str(EXAMPLES / folder / "cluster.yaml"))
    assert out, err
    return " ".join(out.split())


@KNOWN
def test_the_known_reason_is_the_fix_of_the_pod_and_of_its_node(
    folder: str, pod: str, namespace: str, node: str, fix: str
) -> None:
    found = json.loads(said(folder, "explain", pod, "-n", namespace, "-o", "json"))
    assert fix in found["causes"][0]["fix"]["text"]
    assert fix in said(folder, "explain", pod, "-n", namespace)
    assert fix in said(folder, "explain", f"node/{node}")


@KNOWN
def test_before_a_drain_the_claim_is_to_mend_and_not_the_driver(
    folder: str, pod: str, namespace: str, node: str, fix: str
) -> None:
    check = said(folder, "drivers", "--node", node, "--drain-check")
    assert fix in check
    assert "Repair driver" not in check


@KNOWN
def test_a_node_where_preparation_fails_is_no_place_to_start(
    folder: str, pod: str, namespace: str, node: str, fix: str
) -> None:
    full = said(folder, "explain", pod, "-n", namespace, "--full")
    assert f"1 node fits ({node}): all claims are usable here, but the pod does not start here: driver " in full


def test_another_node_whose_driver_lacks_the_gate_would_not_suit_the_pod() -> None:
    full = said("prepare-fails", "explain", "pod/ide-lea", "-n", "dev", "--full")
    assert "Now no other node would suit it; on l40s-2, where it would fit, it would not start: driver" in full


def test_of_a_driver_whose_pod_was_not_seen_the_gate_is_not_known(tmp_path: Path) -> None:
    text = (EXAMPLES / "prepare-fails" / "cluster.yaml").read_text()
    documents = text.split("\n- apiVersion")
    kept = [document for document in documents if not ("kind: Pod\n" in document and "kubelet-plugin" in document)]
    assert len(kept) < len(documents)
    path = tmp_path / "cluster.yaml"
    path.write_text("\n- apiVersion".join(kept))
    _, out, _ = ran("explain", "pod/ide-lea", "-n", "dev", "--snapshot", str(path), "--full")
    assert (
        "Now 1 other node would suit it too: l40s-2; whether driver gpu.nvidia.com has gate TimeSlicingSettings on "
        "l40s-2 is not known."
    ) in " ".join(out.split())


def test_no_log_is_offered_as_the_fix_of_a_gate() -> None:
    short = said("prepare-fails", "explain", "pod/ide-lea", "-n", "dev")
    assert "$ kubectl logs" not in short


def test_a_drain_check_says_who_waits_for_the_driver_to_publish() -> None:
    check = said("pool-incomplete", "drivers", "--node", "a30-1", "--drain-check")
    assert "nobody waits" not in check
    assert "pod ml/train-a30-0 waits for devices of this driver." in check


def test_what_the_driver_says_is_a_fix_where_its_words_are_known() -> None:
    """A device of another driver in the same claim, which older releases of AMD's took for theirs."""
    words = "NodePrepareResources failed for ResourceClaim a: requested GPU is not allocatable: cpudevnuma000"
    items = [node("n1"), plugin("n1"), slices("n1", 4), failing("a", words), *waits("a")]
    snapshot = snapshot_of(json.loads(json.dumps(items).replace(DRIVER, "gpu.amd.com")))
    fixes = mendings(joined(snapshot).rows, snapshot)
    text = written(fixes["gpu.amd.com"].change)
    assert text.startswith("The driver was handed cpudevnuma000, which is a device of another driver in the same claim")
    assert "Upgrade the driver" in text and "https://github.com/ROCm/k8s-gpu-dra-driver/issues/45" in text
