"""Which devices are meant."""

from __future__ import annotations

import pytest

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cli.taint import DeviceFlags
from kubectl_dra.cli.taint.session import resolve
from kubectl_dra.errors import DraError, InputError, UsageError
from kubectl_dra.taint.device_taint_rules import DesiredRule, RuleStage, content
from kubectl_dra.taint.typed import TaintSpec
from tests.taint.world import claim, device_class, gpu, node, pod, result, rule, slice_of, world

OTHER = "nic.example.org"
HERE = world(
    node("n1"),
    node("n2"),
    device_class(),
    slice_of("n1", gpu("gpu-0", "GPU-a"), gpu("gpu-1", "GPU-b")),
    slice_of("n2", gpu("gpu-0", "GPU-c"), gpu("big", "GPU-d", taints=[{"key": "bad", "effect": "NoSchedule"}])),
    slice_of("n2", gpu("nic-0"), driver=OTHER, pool="rack/a"),
    claim("mine", result("gpu-1"), result("gone"), pods=("p",)),
    claim("empty"),
    pod("p", "mine"),
    rule("r", {"driver": "gpu.example.com", "pool": "n1", "device": "ruled"}),
)


def names(*words: str, **selection: object) -> list[str]:
    return [str(target.id) for target in resolve(HERE, words, DeviceFlags(**selection))]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "full"),
    [
        ("gpu.example.com/n1/gpu-0", "gpu.example.com/n1/gpu-0"),
        ("n1/gpu-0", "gpu.example.com/n1/gpu-0"),
        ("n2/gpu-0", "gpu.example.com/n2/gpu-0"),
        ("gpu-1", "gpu.example.com/n1/gpu-1"),
        ("big", "gpu.example.com/n2/big"),
        ("rack/a/nic-0", f"{OTHER}/rack/a/nic-0"),
        ("a/nic-0", f"{OTHER}/rack/a/nic-0"),
        ("n2/nic-0", f"{OTHER}/rack/a/nic-0"),
        (f"{OTHER}/n2/nic-0", f"{OTHER}/rack/a/nic-0"),
        ("gpu.example.com/n1/gone", "gpu.example.com/n1/gone"),
        ("ruled", "gpu.example.com/n1/ruled"),
    ],
)
def test_names(word: str, full: str) -> None:
    assert names(word) == [full]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("gpu-0", "2 devices: gpu.example.com/n1/gpu-0, gpu.example.com/n2/gpu-0"),
        ("gpu-9", "did you mean gpu-0"),
        ("n1/gpu-9", "did you mean n1/gpu-0"),
        ("pu-1", "no device"),
        ("n2/gpu-1", "no device"),
        ("other/n1/gpu-0", "no device"),
    ],
)
def test_names_that_mean_nothing_or_too_much(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        names(word)


@pytest.mark.parametrize("word", ["n1/gpu-0,1", "n1/gpu-0..1", "gpu.example.com/n1/gpu-0,1..1", "n1/gpu-0,gpu-1"])
def test_several_devices_as_the_list_prints_them(word: str) -> None:
    assert names(word) == ["gpu.example.com/n1/gpu-0", "gpu.example.com/n1/gpu-1"]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("n1", "write --node n1"),
        ("node", "write --node NODE"),
        ("node/n1", "write --node n1"),
        ("n1/gpu-0,9", 'no device "n1/gpu-9"'),
        ("n1/gpu-0..2000000000", "no range"),
        ("n1/gpu-3..1", "no range"),
        ("n1/gpu-0,,1", "no device"),
        ("n1/,", "no device"),
    ],
)
def test_what_is_no_device(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        names(word)


@pytest.mark.parametrize("kind", ["node", "nodes", "no"])
def test_nodes_are_named_as_kubectl_taint_names_them(kind: str) -> None:
    with pytest.raises(InputError, match="for all devices of the node write --node n1"):
        names(kind, "n1")


def test_a_device_named_twice_is_meant_once() -> None:
    assert names("gpu-1", "n1/gpu-1", "n1/gpu-0") == ["gpu.example.com/n1/gpu-1", "gpu.example.com/n1/gpu-0"]


@pytest.mark.parametrize(
    ("selection", "full"),
    [
        ({"nodes": ("n1",)}, ["gpu.example.com/n1/gpu-0", "gpu.example.com/n1/gpu-1"]),
        ({"nodes": ("n2",), "classes": ("gpu",)}, ["gpu.example.com/n2/big", "gpu.example.com/n2/gpu-0"]),
        ({"drivers": (OTHER,)}, [f"{OTHER}/rack/a/nic-0"]),
        ({"pools": ("rack/a",)}, [f"{OTHER}/rack/a/nic-0"]),
        (
            {"selector": 'device.attributes["gpu.example.com"].?uuid.orValue("") == "GPU-c"'},
            ["gpu.example.com/n2/gpu-0"],
        ),
        ({"hardware": ("gpu-A", "GPU-d")}, ["gpu.example.com/n1/gpu-0", "gpu.example.com/n2/big"]),
        ({"claims": ("mine",)}, ["gpu.example.com/n1/gone", "gpu.example.com/n1/gpu-1"]),
        ({"pods": ("team/p",), "nodes": ("n1",)}, ["gpu.example.com/n1/gpu-1"]),
    ],
)
def test_selections(selection: dict[str, object], full: list[str]) -> None:
    assert sorted(names(**selection)) == full


@pytest.mark.parametrize(
    ("words", "selection", "error", "said"),
    [
        ((), {}, UsageError, "say which device"),
        (("gpu-1",), {"nodes": ("n1",)}, UsageError, "not both"),
        ((), {"nodes": ("n1",), "drivers": (OTHER,)}, UsageError, "no device is selected"),
        ((), {"nodes": ("n3",)}, InputError, "no node n3"),
        ((), {"hardware": ("GPU-z",)}, InputError, "did you mean"),
        ((), {"claims": ("empty",)}, InputError, "holds no device"),
        ((), {"claims": ("mime",)}, InputError, "did you mean mine?"),
        ((), {"claims": ("other/mine",)}, InputError, "in namespace team"),
        ((), {"pods": ("q",)}, InputError, "does not exist"),
        ((), {"selector": "device.driverr == 1"}, UsageError, "does not compile"),
    ],
)
def test_selections_that_mean_nothing(
    words: tuple[str, ...], selection: dict[str, object], error: type[DraError], said: str
) -> None:
    with pytest.raises(error, match=said):
        names(*words, **selection)


# A slice that no server stores: a device without a pool cannot be tainted, which is a sentence.


@pytest.mark.parametrize("device", [("d", "", "x"), ("", "p", "x"), ("d", "p", "")])
def test_a_rule_names_its_device(device: tuple[str, str, str]) -> None:
    desired = DesiredRule(DeviceID(*device), TaintSpec("k", "", "NoSchedule"))
    with pytest.raises(InputError, match="needs the device's driver, pool and name"):
        content(desired, RuleStage("NoSchedule"), "v1")
