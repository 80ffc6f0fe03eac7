"""The hardware behind a device name, identified by what a driver publishes and a change of name does not affect."""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.slices import Device

# The first that a driver publishes; drivers differ in the names. A bus address is a place, not hardware: left out.
_NAMES: Final = ("uuid", "deviceuuid", "gpuuuid", "serialnumber", "serial", "uniqueid", "guid")


def hardware_id(device: Device) -> str:
    """The device's UUID or serial number from its attributes; empty if it has none.

    Attributes are matched by the part after the domain, ignoring case.
    """
    found: dict[str, str] = {}
    for name, value in device.attributes.items():
        text = value.get("string")
        if isinstance(text, str) and text:
            found.setdefault(_plain(name), text)
    return next((found[name] for name in _NAMES if name in found), "")


def identifies(attribute: str) -> bool:
    """Whether an attribute of this name tells one piece of hardware from another of its kind."""
    return _plain(attribute) in _NAMES


def _plain(attribute: str) -> str:
    return attribute.rpartition("/")[2].lower()
