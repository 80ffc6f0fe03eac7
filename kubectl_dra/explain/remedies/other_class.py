"""Other classes that a request could name: those whose devices its selectors accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubectl_dra.api.claims import DeviceRequest
from kubectl_dra.api.slices import Device
from kubectl_dra.explain.scene.view import View

MAX_CLASSES = 40


def fitting_classes(view: View, spec: DeviceRequest) -> Iterator[str]:
    """Classes, other than the request's own, that admit devices which its selectors accept, by name."""
    selectors = view.cycle.selectors
    wanted = [text for text in spec.selectors if text]
    for name in sorted(view.cycle.classes)[:MAX_CLASSES]:
        devices: Sequence[Device] = [item.device for item in view.kinds] if name != spec.device_class else ()
        for text in (*view.cycle.classes[name].selectors, *wanted):
            verdicts = selectors.verdicts(text or "", devices) if devices else ()
            devices = [device for device, verdict in zip(devices, verdicts, strict=True) if verdict is True]
        if devices:
            yield name
