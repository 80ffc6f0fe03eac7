"""At which stage of a funnel each published device fails, and why. Kept for slices: devices are many more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby

from kubectl_dra.explain.funnel.stages import StageResult
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.scene.view import Published, View

Shape = tuple[int | None, ...]
"""For devices in their order: the position of the stage at which each fails, or None if it is usable."""


class Failures:
    """The failures of a funnel whose ``stages`` are complete."""

    def __init__(self, view: View, stages: Sequence[StageResult]) -> None:
        self._view = view
        self._stages = stages
        # By the slice's name. Slices of the same shape share it.
        self._shapes = self._of_slices()
        self._mixed: dict[str, Shape] = {}
        self._reasons: dict[int, dict[str | int, Words]] = {}

    def _of_slices(self) -> dict[str, Shape]:
        # Stages keep the order of the devices, so each device that fails is the next one of its stage.
        failing = [iter(map(id, stage.failed)) for stage in self._stages]
        following = {next(rest, 0): position for position, rest in enumerate(failing)}
        shared: dict[Shape, Shape] = {}
        found: dict[str, Shape] = {}
        for name, items in self._view.by_slice.items():
            positions: list[int | None] = []
            for key in map(id, items):
                position = following.pop(key, None)
                if position is not None:
                    following[next(failing[position], 0)] = position
                positions.append(position)
            shape = tuple(positions)
            found[name] = shared.setdefault(shape, shape)
        return found

    def each(self) -> Iterator[tuple[Published, int | None]]:
        """The published devices, each with the position of the stage at which it fails."""
        return zip(self._view.published, chain.from_iterable(self._shapes.values()), strict=True)

    def on_node(self, node: str) -> Iterator[tuple[Published, int | None]]:
        """The same of the devices that a node sees."""
        return zip(self._view.on_node(node), self.shape(node), strict=True)

    def on_nodes(self, nodes: Iterable[str]) -> Iterator[tuple[Published, int | None]]:
        """The same of several nodes. A device that many of them see comes once."""
        seen: set[int] = set()
        for node in nodes:
            if self._view.sees_alone(node):
                yield from self.on_node(node)
                continue
            for item, position in self.on_node(node):
                if id(item) not in seen:
                    seen.add(id(item))
                    yield item, position

    def shape(self, node: str) -> Shape:
        """The shape of what a node sees; nodes of the same shape fall short alike."""
        items = self._view.on_node(node)
        if not items:
            return ()
        name = items[0].slice.name
        if items is self._view.by_slice[name]:
            return self._shapes[name]
        known = self._mixed.get(node)
        if known is None:
            known = self._mixed[node] = tuple(self._of_several(items))
        return known

    def _of_several(self, items: Sequence[Published]) -> Iterator[int | None]:
        """Where the devices of several slices, or of parts of slices, fail."""
        for name, group in groupby(items, lambda item: item.slice.name):
            some, whole, shape = list(group), self._view.by_slice[name], self._shapes[name]
            if len(some) < len(whole):
                places = dict(zip(map(id, whole), shape, strict=True))
                shape = tuple([places[id(item)] for item in some])
            yield from shape

    def reason(self, item: Published, position: int | None) -> Words:
        """Why a device fails at the stage of this position; empty if it is usable."""
        return "" if position is None else self.reasons((item,), position)[0]

    def reasons(self, items: Iterable[Published], position: int) -> tuple[Words, ...]:
        """Why devices that fail at a stage do so."""
        known = self._reasons.get(position)
        if known is None:
            known = self._reasons[position] = _reasons(self._stages[position])
        return tuple([known[name] if (name := item.slice.name) in known else known[id(item)] for item in items])


def _reasons(stage: StageResult) -> dict[str | int, Words]:
    """By the slice's name where all that it loses have the same reason, else by the device's identity."""
    found: dict[str | int, Words] = {}
    for name, group in groupby(zip(stage.failed, stage.reasons, strict=True), lambda pair: pair[0].slice.name):
        first, *rest = group
        if all(reason is first[1] for _, reason in rest):
            found[name] = first[1]
        else:
            found.update((id(item), reason) for item, reason in (first, *rest))
    return found
