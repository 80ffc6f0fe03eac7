"""Kueue's configuration, the text in a ConfigMap beside its controller: whether, and as what, it counts devices.

From ``apis/config/v1beta2/configuration_types.go`` of Kueue 0.19; v1beta1 has the same fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from kubectl_dra.api.neighbour_kinds import KUEUE_CONFIGURATION, ConfigMap
from kubectl_dra.data.drivers import parsed

_LONGEST = 1_000_000
CLAIM_GATES = ("KueueDRAIntegration", "DynamicResourceAllocation")
"""Without which Kueue counts no claims: the one since 0.18, on by default, and the one before, off by default."""


class DeviceClassMapping(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One entry of ``deviceClassMappings``: the resource that devices of some classes count as.

    With ``sources`` Kueue counts something else than devices: counters or capacity.
    """

    name: str = ""
    device_class_names: tuple[str, ...] = ()
    sources: tuple[dict[str, Any], ...] = ()


class KueueResources(Struct, frozen=True, rename="camel", omit_defaults=True):
    """``resources`` of the configuration."""

    device_class_mappings: tuple[DeviceClassMapping, ...] = ()


class KueueConfiguration(Struct, frozen=True, rename="camel"):
    """Kueue's configuration, as far as it is about devices."""

    api_version: str = ""
    resources: KueueResources = KueueResources()
    feature_gates: dict[str, bool] = {}

    def mapping(self, device_class: str) -> DeviceClassMapping | None:
        """The entry of a DeviceClass."""
        entries = self.resources.device_class_mappings
        return next((entry for entry in entries if device_class in entry.device_class_names), None)


def configuration_in(text: str) -> KueueConfiguration | None:
    """The configuration that a text holds; None if it is no text of Kueue's, or has another form."""
    if KUEUE_CONFIGURATION not in text or len(text) > _LONGEST:
        return None
    from yaml import YAMLError

    try:
        read = convert(parsed(text), KueueConfiguration)
    except (YAMLError, ValidationError, RecursionError, ValueError):
        return None
    return read if read.api_version.startswith(KUEUE_CONFIGURATION) else None


def configuration_of(settings: ConfigMap) -> KueueConfiguration | None:
    """The configuration that a ConfigMap holds."""
    read = (configuration_in(text) for text in settings.data.values())
    return next((configuration for configuration in read if configuration is not None), None)


def renamed_settings(
    data: Mapping[str, Any],
    key: Callable[[str], str],
    resource: Callable[[str], str],
    device_class: Callable[[str], str],
    otherwise: str,
) -> dict[str, str]:
    """The texts of a ConfigMap with nothing left but what Kueue maps, by other names; ``otherwise`` for other texts."""
    from kubectl_dra.manifests.yaml_output import yaml_text

    out: dict[str, str] = {}
    for name, text in data.items():
        read = configuration_in(text) if isinstance(text, str) else None
        out[key(name)] = otherwise
        if read is not None:
            entries = tuple(
                DeviceClassMapping(
                    *(resource(entry.name), tuple(map(device_class, entry.device_class_names))),
                    sources=({},) if entry.sources else (),
                )
                for entry in read.resources.device_class_mappings
            )
            gates = {name: on for name, on in read.feature_gates.items() if name in CLAIM_GATES}
            changed = KueueConfiguration(read.api_version, KueueResources(entries), gates)
            out[key(name)] = yaml_text(to_builtins(changed), width=1_000_000)
    return out
