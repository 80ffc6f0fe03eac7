"""Device taints, tolerations and DeviceTaintRules (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.api.dra_fields import read_names
from kubectl_dra.api.meta import EMPTY, JSONObject, ObjectMeta

BLOCKING_EFFECTS = frozenset(("NoSchedule", "NoExecute"))


class DeviceTaint(Struct, frozen=True, gc=False):
    """A taint on one device. ``rule`` names the DeviceTaintRule that adds it; it is empty for the driver's
    own taints.
    """

    key: str
    value: str = ""
    effect: str = ""
    time_added: str = ""
    rule: str = ""

    @classmethod
    def from_json(cls, raw: JSONObject, rule: str = "") -> DeviceTaint:
        return cls(
            key=raw.get("key") or "",
            value=raw.get("value") or "",
            effect=raw.get("effect") or "",
            time_added=raw.get("timeAdded") or "",
            rule=rule,
        )

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class DeviceToleration(Struct, frozen=True, gc=False):
    """A toleration of a request or subrequest; an empty key or effect matches all, an empty operator is Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    @classmethod
    def from_json(cls, raw: JSONObject) -> DeviceToleration:
        seconds = raw.get("tolerationSeconds")
        return cls(
            key=raw.get("key") or "",
            operator=raw.get("operator") or "",
            value=raw.get("value") or "",
            effect=raw.get("effect") or "",
            seconds=int(seconds) if seconds is not None else None,
        )

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Whether this toleration covers the taint: effect, then key, then operator and value."""
        return self.mismatch(taint) is None

    def mismatch(self, taint: DeviceTaint) -> str | None:
        """The first part that does not match ("effect", "key", "value", "operator"), or None."""
        if self.effect and self.effect != taint.effect:
            return "effect"
        if self.key and self.key != taint.key:
            return "key"
        if self.operator == "Exists":
            return None
        if self.operator in ("", "Equal"):
            return None if self.value == taint.value else "value"
        return "operator"


_SELECTOR_KEYS: Final = read_names("DeviceTaintSelector")


EVERY_DEVICE: Final = (None, None, None)
"""A selector that names nothing, and so selects every device."""


class DeviceTaintRule(Struct, frozen=True, gc=False):
    """A cluster-wide rule that taints devices.

    ``selector`` is (driver, pool, device), each None if not named; None if the rule has no selector.
    ``unmodelled`` names further selector fields: 1.33 and 1.34 also selected by class and CEL.
    """

    metadata: ObjectMeta
    selector: tuple[str | None, str | None, str | None] | None
    taint: DeviceTaint
    unmodelled: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, raw: JSONObject) -> DeviceTaintRule:
        meta = ObjectMeta.from_json(raw.get("metadata") or EMPTY)
        spec = raw.get("spec") or EMPTY
        selector = spec.get("deviceSelector")
        return cls(
            metadata=meta,
            selector=None
            if selector is None
            else (selector.get("driver"), selector.get("pool"), selector.get("device")),
            taint=DeviceTaint.from_json(spec.get("taint") or EMPTY, rule=meta.name),
            unmodelled=tuple(sorted((selector or EMPTY).keys() - _SELECTOR_KEYS)),
        )

    def selects(self, driver: str, pool: str, device: str) -> bool:
        """Whether every part that the selector names is equal. False for a rule without a selector."""
        if self.selector is None:
            return False
        of_driver, of_pool, of_device = self.selector
        return (
            (of_driver is None or of_driver == driver)
            and (of_pool is None or of_pool == pool)
            and (of_device is None or of_device == device)
        )


def distinct(taints: Iterable[DeviceTaint]) -> tuple[DeviceTaint, ...]:
    """Each taint of several devices once, with the earliest time at which one of them got it."""
    first: dict[tuple[str, str], DeviceTaint] = {}
    for taint in taints:
        known = first.setdefault((str(taint), taint.rule), taint)
        if taint.time_added and (not known.time_added or taint.time_added < known.time_added):
            first[str(taint), taint.rule] = taint
    return tuple(first.values())


def seconds_tolerated(taint: DeviceTaint, tolerations: Sequence[DeviceToleration]) -> int | None:
    """Seconds that a pod may keep such a device after a NoExecute taint was added; None if for good.

    Only tolerations of exactly this effect count, and of several the shortest.
    """
    counting = [
        toleration for toleration in tolerations if toleration.effect == "NoExecute" and toleration.tolerates(taint)
    ]
    if any(toleration.seconds is None for toleration in counting):
        return None
    return max(0, min((toleration.seconds or 0 for toleration in counting), default=0))


def blocking_taint(taints: Sequence[DeviceTaint], tolerations: Sequence[DeviceToleration]) -> DeviceTaint | None:
    """The first taint that prevents a device from being allocated, or None.

    Only ``NoSchedule`` and ``NoExecute`` block; ``None`` and unknown effects never do.
    """
    for taint in taints:
        if taint.effect in BLOCKING_EFFECTS and not any(toleration.tolerates(taint) for toleration in tolerations):
            return taint
    return None
