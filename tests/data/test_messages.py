"""Known messages: each entry's example is its case, and no text makes them slow."""

from __future__ import annotations

import re
import time

import pytest

from kubectl_dra.data.drivers import catalogue
from kubectl_dra.data.messages import ANY, KUBELET, LAYERS, KnownMessage, known_messages, understood

each = pytest.mark.parametrize("entry", known_messages(), ids=lambda entry: entry.example[:50])
ENTRIES = 110


@each
def test_an_example_is_understood_as_its_own_entry(entry: KnownMessage) -> None:
    drivers = [name for name in entry.says if name not in (KUBELET, ANY)]
    found = understood(entry.example)
    for text in (entry.example, f"Failed to prepare dynamic resources: prepare dynamic resources: {entry.example}"):
        found = understood(text, drivers)
        assert found is not None and found.entry == entry
        # As pasted, without knowing the claim: no entry of another driver says something else.
        pasted = understood(text)
        assert pasted is not None and pasted.entry == entry
    assert found is not None and not re.search(r"\{\w+\}", found.means + found.do), (
        "a part that the pattern does not have"
    )


@each
def test_an_entry_is_written_for_people(entry: KnownMessage) -> None:
    for text in (entry.means, entry.do):
        assert text[0].isupper() or text.startswith(("{", "nvidia-smi"))
        assert text.endswith(".") and len(text) < 330
    assert set(entry.says) <= {KUBELET, ANY, *LAYERS, *catalogue().names}
    assert re.fullmatch(r"(\d+|[\w-]+/[\w-]+#\d+)?", entry.known)


def test_there_are_as_many_as_were_read() -> None:
    assert len(known_messages()) >= ENTRIES
    assert len({entry.pattern for entry in known_messages()}) == len(known_messages())


def test_the_claims_driver_decides_where_two_could_say_it() -> None:
    text = "requested GPU is not allocatable: cpudevnuma000"
    found = understood(f"NodePrepareResources failed for ResourceClaim w: {text}", ["gpu.amd.com", "dra.cpu"])
    assert found is not None and found.entry.says == ("gpu.amd.com",)
    assert "cpudevnuma000, which is a device of another driver" in found.means


def test_what_nobody_knows_is_not_guessed() -> None:
    assert understood("everything is fine") is None
    assert understood("") is None


HOSTILE = [
    "a" * 1_000_000,
    "NodePrepareResources failed for ResourceClaim " * 20_000,
    "error creating MIG device: " * 30_000,
    "fetch ResourceClaim x: " * 30_000 + "not foun",
    "\x1b[31m\u202e" * 100_000,
    '"' * 500_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_takes_long(text: str) -> None:
    understood("warm")
    began = time.process_time()
    understood(text)
    assert time.process_time() - began < 2


def test_parts_of_a_hostile_text_stay_parts() -> None:
    found = understood("DRA driver {do}{driver}{pattern} is not registered")
    assert found is not None and "{do}{driver}{pattern}" in found.means
    long = understood(f"DRA driver {'x' * 5000} is not registered")
    assert long is not None and len(long.means) < 300
