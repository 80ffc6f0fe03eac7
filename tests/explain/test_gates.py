"""Gates that stored slices prove, and what follows for the answer."""

from __future__ import annotations

import json

import pytest

from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.scheduling.scheduler import BINDING, CAPACITY, PARTITIONS, TAINTS, proved
from tests.ran import ran
from tools.builders import device, slice_of
from tools.examples import EXAMPLES


@pytest.mark.parametrize(
    ("entry", "gate"),
    [
        (slice_of(device("d", taint="k:NoSchedule")), TAINTS),
        (slice_of(device("d", consumes={"s.c": 1})), PARTITIONS),
        (slice_of(counters={"s.c": 1}), PARTITIONS),
        (slice_of(device("d", multi=True)), CAPACITY),
        (slice_of(device("d", bindingConditions=["x"], bindingFailureConditions=["y"])), BINDING),
    ],
)
def test_a_field_proves_its_gate(entry: object, gate: str) -> None:
    assert proved([entry], frozenset(), UNTOLD) == {gate}  # type: ignore[list-item]
    assert proved([entry], {TAINTS, PARTITIONS, CAPACITY, BINDING}, UNTOLD) == frozenset()  # type: ignore[list-item]


def test_a_plain_slice_proves_nothing() -> None:
    assert proved([slice_of(device("d", a="A", m=1))], frozenset(), UNTOLD) == frozenset()


def explained(*flags: str) -> tuple[int, list[str]]:
    """The exit code and the notes about the example whose devices are all tainted."""
    words = ["explain", "pod/eval-0", "-n", "ml", "--snapshot", str(EXAMPLES / "all-tainted" / "cluster.yaml")]
    code, out, err = ran(*words, "-o", "json", *flags)
    assert out, err
    return code, json.loads(out)["notes"]


@pytest.mark.parametrize(("flags", "code"), [((), 1), (("--feature-gates", "DRADeviceTaints=false"), 3)])
def test_a_stored_taint_counts_on_an_older_release(flags: tuple[str, ...], code: int) -> None:
    """With the gate off the devices are there, but the scheduler's word in the snapshot says otherwise."""
    ended, notes = explained("--kubernetes-version", "1.35", *flags)
    assert ended == code
    shown = any("DRADeviceTaints" in note and "show that it is on" in note for note in notes)
    assert shown is not bool(flags)


@pytest.mark.parametrize(("release", "random"), [("1.34", True), ("1.35", True), ("1.36", False), ("1.37", False)])
def test_pools_are_in_random_order_up_to_1_35(release: str, random: bool) -> None:
    _, notes = explained("--kubernetes-version", release)
    assert any("random order" in note for note in notes) is random


@pytest.mark.parametrize("off", ["DRAConsumableCapacity", "DRADeviceBindingConditions", "both"])
def test_pools_are_in_random_order_without_the_gates_that_sort_them(off: str) -> None:
    gates = ["DRAConsumableCapacity", "DRADeviceBindingConditions"] if off == "both" else [off]
    flag = ",".join(f"{gate}=false" for gate in gates)
    _, notes = explained("--kubernetes-version", "1.36", "--feature-gates", flag)
    assert any("random order" in note for note in notes) is (off == "both")
