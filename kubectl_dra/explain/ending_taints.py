"""What gives devices back to new pods: the end of taints, by rules or by their driver, or of a node's cordon."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from typing import Final

from kubectl_dra.command import deleting, uncordon
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.node_reasons import NodeCordoned
from kubectl_dra.explain.phrase import Phrase, say

MAX_COMMANDS: Final = 3


def ending_taints(rules: Sequence[str], own: Collection[tuple[str, str]] = ()) -> Remedy:
    """What takes the taints of these DeviceTaintRules from devices; without a rule those that drivers set: ``own`` has
    driver and key of each.
    """
    if rules:
        deleted = tuple(deleting("devicetaintrule", rule) for rule in rules[:MAX_COMMANDS])
        text = "Delete {rules} as soon as the devices may be used again."
        return Remedy(say(text, rules=rules_named(rules)), commands=deleted)
    passing = {driver.passing_taints.get(key) for name, key in own if (driver := catalogue().driver(name)) is not None}
    if len(passing) == 1 and (known := passing.pop()):
        return Remedy(known)
    unknown = sorted({key for name, key in own if not _says_a_fault(name, key)})
    if unknown:
        return Remedy(
            say(
                "Repair or reset the device if {taints:some} {count:says|say} that it is broken. Its driver set the "
                "taint and removes it when the reason is over; some drivers do so only when they are restarted.",
                taints=unknown,
                count=len(unknown),
            )
        )
    # Such a taint says that the device is unfit: tolerating it is no way out to offer.
    return Remedy(
        "Repair or reset the device. Its driver set the taint and removes it once the device is healthy; some drivers "
        "do so only when they are restarted."
    )


def _says_a_fault(driver: str, key: str) -> bool:
    """Whether the catalogue knows the taint of the driver, and as a fault."""
    known = catalogue().driver(driver)
    patterns = [pattern for pattern in known.taints if pattern not in known.passing_taints] if known is not None else []
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def rules_named(rules: Sequence[str]) -> Phrase:
    """The rules by name."""
    return say("{kind} {rules:some}", kind="DeviceTaintRule" if len(rules) == 1 else "DeviceTaintRules", rules=rules)


def uncordoning(node: str) -> Remedy:
    """The end of a node's cordon."""
    return Remedy(say("{what:capital}.", what=NodeCordoned.ended_on((node,))), commands=(uncordon(node),))
