"""Why a change is unsafe by the drivers of its resources alone."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_dra.migrate.vendors.model import Resource


def of_driver(resources: Mapping[str, Resource]) -> list[str]:
    """Why pods that used these resources, by name, may get other devices from claims."""
    doubts = [
        f"the driver of {name} differs from its device plugin (MIG130)"
        for name, resource in resources.items()
        if resource.outcome == "note"
    ]
    return doubts + [
        f"the class may have other devices than the device plugin gave for {name}"
        for name, resource in resources.items()
        if resource.unsafe and resource.outcome != "note"
    ]
