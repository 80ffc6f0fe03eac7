"""Classes that a request could name instead of its own: those whose devices its selectors take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.slices import Device
from kubectl_dra.explain.blocked import Blocked, Surroundings
from kubectl_dra.explain.remedies.prove import Proof
from kubectl_dra.explain.scene.view import View

MAX_CLASSES = 40
_DRIVER: Final = re.compile(r"\bdevice\.driver\b")


def fitting_classes(view: View, spec: DeviceRequest) -> Iterator[str]:
    """Classes, other than the request's own, that select devices which its selectors take, by name."""
    selectors = view.cycle.selectors
    wanted = [text for text in spec.selectors if text]
    for name in sorted(view.cycle.classes)[:MAX_CLASSES]:
        devices: Sequence[Device] = [item.device for item in view.kinds] if name != spec.device_class else ()
        for text in (*view.cycle.classes[name].selectors, *wanted):
            verdicts = selectors.verdicts(text or "", devices) if devices else ()
            devices = [device for device, verdict in zip(devices, verdicts, strict=True) if verdict is True]
        if devices:
            yield name


def of_class(name: str, spec: DeviceRequest) -> DeviceRequest:
    """The request with another class."""
    return replace(spec, device_class=name)


def instead(around: Surroundings, blocked: Blocked) -> tuple[str, Proof] | None:
    """A class to name where the selector that fails asks for another driver than the request's class has."""
    if blocked.stage.name != "request-selector" or not _DRIVER.search(blocked.stage.expression):
        return None
    for name in fitting_classes(around.view, blocked.spec):
        proof = around.change(blocked, partial(of_class, name))
        if proof is not None:
            return name, proof
    return None
