"""Notes on requests that become claims: for which devices, and why a claim narrows them down."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubectl_dra.migrate.device_plugins.asks import Ask
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, class_of
from kubectl_dra.migrate.model import Moved

_OF_DEVICE: Final = re.compile(r'device\.attributes\["[^"]+"\]\.(\w+ == "[^"]*")')


def of_claims(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan], reasons: Sequence[str]) -> str:
    """One sentence: which requests become claims, the selectors of their own, and the ``reasons`` of labels."""
    parts = []
    for name in dict.fromkeys(ask.resource.name for ask in asks if not ask.resource.part_of):
        who = ", ".join(dict.fromkeys(ask.container.name for ask in asks if ask.resource.name == name))
        parts.append(f"{name} of {who} becomes a claim")
    return "; ".join((*parts, *_narrowed(asks, placements), *reasons))


def _narrowed(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan]) -> Iterator[str]:
    """Why a request has selectors that no label of the pod asked for."""
    for name, resource in {ask.resource.name: ask.resource for ask in asks}.items():
        if resource.selectors:
            selected = " and ".join(map(_condition, resource.selectors))
            device_class = class_of(resource, placements)
            yield f"class {device_class} has other devices than {name}, too, so the claim selects {selected}"


def _condition(selector: str) -> str:
    """A selector in a sentence: without the driver's domain where it compares one attribute."""
    one_line = " ".join(selector.split())
    compared = _OF_DEVICE.fullmatch(one_line)
    return compared[1] if compared else one_line


def moved(asks: Sequence[Ask], placements: Mapping[str, PlacementPlan]) -> tuple[Moved, ...]:
    """The resources that become claims, with the classes and drivers of these."""
    resources = {ask.resource.name: ask.resource for ask in asks if not ask.resource.part_of}
    return tuple(Moved(name, class_of(resource, placements), resource.driver) for name, resource in resources.items())
