"""A plugin that is here takes part, and its own words are not taken for those of a stranger."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

from kubectl_dra import scheduling
from kubectl_dra.api.releases import MODELLED
from kubectl_dra.scheduling import chain
from kubectl_dra.scheduling.framework import Plugin
from kubectl_dra.scheduling.profile import default_profile
from kubectl_dra.scheduling.reasons import Reason, foreign

# They refuse a pod as a whole, or before it is queued, so that no message counts nodes with them.
OF_THE_POD = frozenset(
    (
        "ClaimEnding",
        "ClaimLost",
        "ClaimMissing",
        "ClaimNotCreated",
        "ClaimOfAnotherPod",
        "ClassOfClaimMissing",
        "ClaimOfOther",
        "ClaimUnknown",
        "ClaimWithoutClass",
        "ClaimWithoutName",
        "EphemeralClaimNotMade",
        "Gated",
        "GroupNotInWorkload",
        "NeverPreempts",
        "NoDefaultClass",
        "ObjectNotFound",
        "PriorityDiffers",
        "StorageClassNotFound",
        "TooFewPeers",
        "UnboundImmediateClaims",
        "VictimsEnding",
        "VolumeWithoutName",
    )
)


def reasons(of: type[Reason] = Reason) -> Iterator[type[Reason]]:
    for module in pkgutil.iter_modules(scheduling.__path__):
        importlib.import_module(f"{scheduling.__name__}.{module.name}")
    for kind in of.__subclasses__():
        yield kind
        yield from reasons(kind)


KINDS = sorted({kind for kind in reasons() if kind.TEXT}, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_what_a_plugin_says_is_known(kind: type[Reason]) -> None:
    text = re.sub(r"\{[^}]*\}", "x", kind.TEXT)
    said = foreign(f"0/1 nodes are available: 1 {text}. preemption: none.")
    assert bool(said) == (kind.__name__ in OF_THE_POD)


def test_each_plugin_has_its_place_in_the_default_profile() -> None:
    newest = [*MODELLED][-1]
    enabled = {name for names in default_profile(newest).plugins.values() for name in names}
    assert {name for name in chain._KINDS if name not in enabled} == set()


def test_every_plugin_takes_part() -> None:
    """One that nobody lists would never refuse a pod, and no other test would miss it."""
    names = (info.name for info in pkgutil.iter_modules(scheduling.__path__, "kubectl_dra.scheduling."))
    here = {
        kind
        for module in map(importlib.import_module, names)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Plugin) and kind is not Plugin
    }
    assert here == {kind for release in MODELLED for kind in chain.order(default_profile(release))}
