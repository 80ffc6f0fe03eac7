"""One name means one device, whichever command it is given to; and what a device is called for people."""

from __future__ import annotations

import pytest

from kubectl_dra.cli.taint import DeviceFlags
from kubectl_dra.cli.taint.session import resolve
from kubectl_dra.errors import InputError
from kubectl_dra.explain.devices.device_state import model_of
from kubectl_dra.explain.devices.wanted import published_device
from tests.taint.test_targets import HERE, OTHER

WORDS = ("n1/gpu-0", "gpu.example.com/n1/gpu-0", "big", "rack/a/nic-0", "a/nic-0", "n2/nic-0", f"{OTHER}/n2/nic-0")


@pytest.mark.parametrize("word", WORDS)
def test_every_command_means_the_same_device(word: str) -> None:
    (target,) = resolve(HERE, (word,), DeviceFlags())
    assert published_device(HERE.snapshot, word)[0] == target.id


@pytest.mark.parametrize("word", ["gpu-0", "gpu-9", "other/n1/gpu-0", "n2/gpu-1"])
def test_what_one_does_not_know_no_other_knows(word: str) -> None:
    for ask in (lambda: resolve(HERE, (word,), DeviceFlags()), lambda: published_device(HERE.snapshot, word)):
        with pytest.raises(InputError):
            ask()


@pytest.mark.parametrize(
    ("attributes", "name"),
    [
        ({"productName": "NVIDIA A30", "profile": "1g.6gb"}, "NVIDIA A30 1g.6gb"),
        (
            {"productName": "AMD_Instinct_MI300X_OAM", "partitionProfile": "dpx_nps1"},
            "AMD_Instinct_MI300X_OAM dpx_nps1",
        ),
        ({"productName": "MI300X", "computePartition": "cpx", "memoryPartition": "nps4"}, "MI300X cpx nps4"),
        ({"family": "AI"}, "AI"),
    ],
)
def test_the_part_follows_the_product(attributes: dict[str, str], name: str) -> None:
    assert model_of({f"gpu.example.com/{key}": {"string": value} for key, value in attributes.items()}) == name
