"""``--verify``: cel-python evaluates every selector on every known device, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kubectl_dra.lint.context import AssumedCluster, Item, compile_selector, selector_texts

if TYPE_CHECKING:
    from kubectl_dra.cel.device import DeviceInput

_SHOWN = 3


class SelectorOpinion(Struct, frozen=True):
    """How many evaluations agree; those that differ, in words; how many could not be compared, by reason."""

    expressions: int
    devices: int
    agree: int
    differ: tuple[str, ...]
    not_comparable: int
    reasons: tuple[tuple[str, int], ...]

    @property
    def told(self) -> str:
        """One sentence for people."""
        if not self.expressions:
            return "--verify: there is no selector that compiles"
        if not self.devices:
            return "--verify: there are no devices: give ResourceSlices, or use --snapshot or --live"
        text = f"--verify: {self.expressions} selectors on {self.devices} devices by cel-python: "
        text += f"{self.agree} answers agree, {len(self.differ)} differ"
        if self.not_comparable:
            why = "; ".join(f"{reason}: {number}" for reason, number in self.reasons[:_SHOWN])
            text += f", {self.not_comparable} cannot be compared ({why})"
        return text


def verify(items: Iterable[Item], target: AssumedCluster) -> SelectorOpinion:
    """Compare both engines on each distinct expression, for the devices given and those of the snapshot."""
    from kubectl_dra.cel.second_opinion import Opinions

    items = tuple(items)
    devices = tuple(_devices(items, target))
    expressions = dict.fromkeys(
        text for item in items if item.is_dra and item.v1 is not None for _, text in selector_texts(item.v1, ("spec",))
    )
    opinions = Opinions(devices)
    agree = skipped = compiled = 0
    differ: list[str] = []
    reasons: Counter[str] = Counter()
    for expression in expressions:
        program = compile_selector(expression, target)
        if isinstance(program, Exception):
            continue
        compiled += 1
        comparison = opinions.compare(program)
        agree += comparison.agree
        skipped += comparison.not_comparable
        reasons.update(comparison.reasons)
        for one in comparison.differ:
            first = devices[one.devices[0]]
            where = f"{len(one.devices)} devices such as one of {first.driver}"
            differ.append(f"{' '.join(expression.split())} on {where}: here {one.ours}, cel-python {one.theirs}")
    return SelectorOpinion(compiled, len(devices), agree, tuple(differ), skipped, tuple(reasons.most_common()))


def _devices(items: Sequence[Item], target: AssumedCluster) -> Iterable[DeviceInput]:
    from kubectl_dra.api.slices import Device

    for item in items:
        spec = (item.v1 or {}).get("spec")
        if item.kind != "ResourceSlice" or not isinstance(spec, dict):
            continue
        for raw in spec.get("devices") or ():
            try:
                yield Device.from_json(str(spec.get("driver") or ""), raw)
            except (ValueError, KeyError, TypeError, AttributeError):
                # What is wrong with it is said by other rules.
                continue
    if target.snapshot is not None:
        for entry in target.snapshot.exact().slices:
            yield from entry.devices
