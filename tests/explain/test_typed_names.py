"""One name means one device, whichever command it is given to."""

from __future__ import annotations

import pytest

from kubectl_dra.cli.taint import DeviceFlags
from kubectl_dra.cli.taint.session import resolve
from kubectl_dra.errors import InputError
from kubectl_dra.explain.devices.typed_names import published_device
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
