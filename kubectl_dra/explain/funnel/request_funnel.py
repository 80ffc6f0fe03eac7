"""Which devices are left for one request by itself, stage by stage, and where the others went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property

from kubectl_dra.allocation.capacity import NOTHING, shortage
from kubectl_dra.allocation.counters import CounterShortage, GroupClash
from kubectl_dra.allocation.pools import Pool
from kubectl_dra.api.claims import ALL, DeviceClass, DeviceRequest, ResourceClaim
from kubectl_dra.api.nodes import OPTIONAL_OPERATIONS
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.api.taints import blocking_taint
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cel import EvaluationError, Program
from kubectl_dra.explain.funnel.device_view import DeviceView, PublishedDevice, in_slices
from kubectl_dra.explain.funnel.selector_terms import judge, observations, term_texts
from kubectl_dra.explain.funnel.shown import Observation, StageName
from kubectl_dra.explain.funnel.stages import (
    GROUPS_GATE,
    Failures,
    FeatureOff,
    GroupsDiffer,
    OperationsNotSkipped,
    PoolObsolete,
    SelectorFalse,
    Shape,
    Shortfall,
    StageResult,
    counted,
    describe_counters,
    describe_pool,
    describe_shortage,
    describe_taint,
    story,
    told_by_numbers,
)
from kubectl_dra.explain.holders import HolderIndex
from kubectl_dra.explain.phrase import ObjectName, Words, say

_SELECTED = (StageName.TAINT, StageName.HELD, StageName.GROUPS, StageName.COUNTERS)
"""The stages at which a device is one that the request selects, and not to be had."""
# The stages that say what a device is; the later ones say whether it can be had.
_SELECTING = (
    StageName.PUBLISHED,
    StageName.NODE,
    StageName.POOL,
    StageName.OPERATIONS,
    StageName.CLASS_SELECTOR,
    StageName.REQUEST_SELECTOR,
)
BINDING = "DRADeviceBindingConditions"
PARTITIONS = "DRAPartitionableDevices"
_FALSE = SelectorFalse()


class RequestFunnel:
    """The funnel of one request or subrequest. ``usable`` are the devices left at its end."""

    def __init__(
        self, view: DeviceView, name: str, spec: DeviceRequest, device_class: DeviceClass, holders: HolderIndex
    ) -> None:
        self.view = view
        self.name = name
        self.spec = spec
        self.device_class = device_class
        self.stages: list[StageResult] = []
        self._holders = holders
        self._left: Sequence[PublishedDevice] = view.published
        self._observed = ByIdentity[StageResult, ByIdentity[Program, tuple[Observation, ...]]]()
        self._shortfalls: dict[str, Shortfall | None] = {}
        self._short_shapes: dict[Shape, Shortfall | None] = {}
        self._run()
        self._selected = max(position for position, stage in enumerate(self.stages) if stage.name in _SELECTING)
        self.usable = self._left
        self.failures = Failures(view, self.stages)

    def holders_of(self, device: DeviceID) -> Sequence[ResourceClaim]:
        """The claims that hold a device."""
        return self._holders.claims(device)

    @cached_property
    def pools_held(self) -> Set[tuple[str, str]]:
        """The pools with devices that claims hold, each as driver and name."""
        return {device[:2] for device in self.view.cycle.state.holders}

    def _run(self) -> None:
        self._close(StageResult(StageName.PUBLISHED, "published by drivers"))
        self._filter(StageName.NODE, "on nodes where the pod may run", self._node_problem, self._place)
        self._filter(StageName.POOL, "in usable pools", self._pool_problem, self._pool)
        if self.view.cycle.features.experimental:
            label = "on nodes that skip operations"
            self._filter(StageName.OPERATIONS, label, self._operations_problem, self._place, quiet=True)
        for index, expression in enumerate(self.device_class.selectors):
            self._select(
                StageName.CLASS_SELECTOR,
                say("class {name}", name=self.device_class.name),
                index,
                expression or "",
                len(self.device_class.selectors),
            )
        for index, expression in enumerate(self.spec.selectors):
            self._select(StageName.REQUEST_SELECTOR, "", index, expression or "", len(self.spec.selectors))
        if not self.view.cycle.features.binding_conditions:
            self._filter(
                StageName.BINDING, "without binding conditions", self._binding_problem, self._device, quiet=True
            )
        if self.view.cycle.features.consumable_capacity:
            self._filter(
                StageName.CAPACITY, "with the requested capacity", self._capacity_problem, self._shares, quiet=True
            )
        if self.view.cycle.features.device_taints:
            self._filter(StageName.TAINT, "not tainted, or tolerated", self._taint_problem, self._tainted, quiet=True)
        if not self.spec.admin_access:
            self._filter(StageName.HELD, "not held by other claims", self._held_problem, self._itself)
        if self.view.cycle.features.compatibility_groups:
            label = "compatible with what is in use"
            self._filter(StageName.GROUPS, label, self._group_problem, self._counting, quiet=True)
        if self.view.cycle.features.partitionable_devices:
            self._filter(StageName.COUNTERS, "with counters left", self._counter_problem, self._counting, quiet=True)
        else:
            self._filter(
                StageName.COUNTERS, "without shared counters", self._consumes_counters, self._device, quiet=True
            )

    def _close(self, stage: StageResult, *, quiet: bool = False) -> None:
        stage.passed = len(self._left)
        if quiet and not stage.failed:
            return
        self.stages.append(stage)

    def _filter(
        self,
        name: StageName,
        label: str,
        problem: Callable[[PublishedDevice], Words],
        kinds_of: Callable[[Sequence[PublishedDevice]], list[object]],
        *,
        quiet: bool = False,
    ) -> None:
        """Drop the devices with a problem. Devices of an equal kind have the same problem; None means no problem."""
        stage = StageResult(name, label)
        if kinds_of in (self._place, self._pool) and self._clear(problem):
            self._close(stage, quiet=quiet)
            return
        kinds = kinds_of(self._left)
        one_of = dict(zip(kinds, self._left, strict=True))
        problems = {key: "" if key is None else problem(item) for key, item in one_of.items()}
        if any(problems.values()):
            kept: list[PublishedDevice] = []
            for item, key in zip(self._left, kinds, strict=True):
                reason = problems[key]
                if reason:
                    stage.fail(item, reason)
                else:
                    kept.append(item)
            self._left = kept
        self._close(stage, quiet=quiet)

    def _clear(self, problem: Callable[[PublishedDevice], Words]) -> bool:
        """Whether a problem that all devices of a slice share is known to concern no slice at all."""
        for items in self.view.by_slice.values():
            if not items:
                continue
            first, slice_ = items[0], items[0].slice
            if slice_ is not items[-1].slice or slice_.per_device_node_selection or problem(first):
                return False
        return True

    @staticmethod
    def _device(items: Sequence[PublishedDevice]) -> list[object]:
        return [id(item.device) for item in items]

    @staticmethod
    def _tainted(items: Sequence[PublishedDevice]) -> list[object]:
        return [id(item.device) if item.device.taints else None for item in items]

    @staticmethod
    def _pool(items: Sequence[PublishedDevice]) -> list[object]:
        return [item.slice.pool for item in items]

    @staticmethod
    def _place(items: Sequence[PublishedDevice]) -> list[object]:
        """The slice determines where a device is, unless each device says it."""
        return [id(item) if item.slice.per_device_node_selection else id(item.slice) for item in items]

    def _shares(self, items: Sequence[PublishedDevice]) -> list[object]:
        consumed = self.view.cycle.state.consumed
        if not consumed:
            return self._device(items)
        return [item.id if item.id in consumed else id(item.device) for item in items]

    def _itself(self, items: Sequence[PublishedDevice]) -> list[object]:
        """For each device the identity of its holders: the same claims hold many."""
        claims, identities = self._holders.claims, list[object]()
        for slice_, group in in_slices(items):
            held = self.view.held_alone(slice_)
            names = slice_.names if held else ()
            identities += [
                id(claims(DeviceID(*slice_.pool, name))) if held and (name := names[item.position]) in held else None
                for item in group
            ]
        return identities

    @staticmethod
    def _counting(items: Sequence[PublishedDevice]) -> list[object]:
        return [id(item) if item.device.consumes_counters else None for item in items]

    def _select(self, name: StageName, label: Words, index: int, expression: str, total: int) -> None:
        selectors = self.view.cycle.selectors
        texts = term_texts(selectors, expression)
        judged = judge(selectors, expression, [item.device for item in self._left])
        kept: list[PublishedDevice] = []
        by_term: list[list[PublishedDevice]] = [[] for _ in texts]
        errors: dict[int, EvaluationError] = {}
        for item, refusal in zip(self._left, judged, strict=True):
            if refusal is None:
                kept.append(item)
                continue
            by_term[refusal.term].append(item)
            if refusal.error is not None:
                errors[id(item)] = refusal.error
        remaining = len(self._left)
        numbered = total > 1 or name is StageName.REQUEST_SELECTOR
        field = say("selectors[{index}]", index=index)
        selector: Words = label
        if numbered:
            selector = say("{label} {field}", label=label, field=field) if label else field
        for term, text in enumerate(texts):
            place = selector
            if len(texts) > 1:
                text_of_place = "{selector}, term {term} of {terms}"
                place = say(text_of_place, selector=selector, term=term + 1, terms=len(texts))
            stage = StageResult(name, place, selector, expression=text, program=expression, term=term)
            stage.failed = by_term[term]
            stage.reasons = [_FALSE] * len(stage.failed)
            for index, item in enumerate(stage.failed if errors else ()):
                error = errors.get(id(item))
                if error is not None and (message := str(error)):
                    stage.reasons[index] = message
                    stage.errors.append((item, message, error.offset))
            remaining -= len(stage.failed)
            self._close(stage)
            stage.passed = remaining
        self._left = kept

    def _node_problem(self, item: PublishedDevice) -> Words:
        view, slice_ = self.view, item.slice
        if slice_.name not in view.slice_nodes and slice_.pool in view.obsolete:
            return ""
        if not view.cycle.features.partitionable_devices and slice_.per_device_node_selection is not None:
            return FeatureOff("its slice has perDeviceNodeSelection", PARTITIONS)
        if view.cycle.features.ignores_groups and view.cycle.index.uses_groups(slice_):
            return FeatureOff("its slice has compatibility groups", GROUPS_GATE)
        if slice_.shared_counters:
            return say("its slice has both devices and sharedCounters, as only 1.34 reads them")
        if slice_.scope.node_name and slice_.scope.node_name in view.ineligible:
            return view.ineligible[slice_.scope.node_name]
        if slice_.name not in view.slice_nodes:
            scope = item.device.scope if slice_.per_device_node_selection else slice_.scope
            if scope.node_name and scope.node_name not in view.node_by_name:
                return say("node {name} does not exist", name=scope.node_name)
            return say("published for {scope}, which matches no eligible node", scope=str(scope))
        if slice_.per_device_node_selection and not view.nodes_of(item):
            return say("device is for {scope}, which matches no eligible node", scope=str(item.device.scope))
        return ""

    def _pool_problem(self, item: PublishedDevice) -> Words:
        pool = self.view.pool_seen.get(item.slice.pool)
        return PoolObsolete(item.slice.pool) if pool is None else describe_pool(pool)

    def _binding_problem(self, item: PublishedDevice) -> Words:
        return FeatureOff("has binding conditions", BINDING) if item.device.binding_conditions else ""

    def _capacity_problem(self, item: PublishedDevice) -> Words:
        used = self.view.cycle.state.consumed.get(item.id, NOTHING)
        short = shortage(
            item.device, self.spec.capacity, used, NOTHING, fractional=self.view.cycle.features.fractional_capacity
        )
        return describe_shortage(short) if short else ""

    def _taint_problem(self, item: PublishedDevice) -> Words:
        taint = blocking_taint(item.device.taints, self.spec.tolerations)
        return say("taint {taint}", taint=describe_taint(taint, self.spec)) if taint else ""

    def _held_problem(self, item: PublishedDevice) -> Words:
        return self._holders.describe(item.id)

    def _consumes_counters(self, item: PublishedDevice) -> Words:
        return FeatureOff("uses shared counters", PARTITIONS) if item.device.consumes_counters else ""

    def _operations_problem(self, item: PublishedDevice) -> Words:
        if not item.slice.skip_node_operations:
            return ""
        if not self.view.cycle.features.node_operations:
            return FeatureOff("its slice skips operations on the node", OPTIONAL_OPERATIONS)
        nodes = [self.view.node_by_name[name] for name in self.view.nodes_of(item) if name in self.view.node_by_name]
        if not nodes or any(node.skips_operations for node in nodes):
            return ""
        return OperationsNotSkipped(ObjectName("Node", nodes[0].name))

    def _group_problem(self, item: PublishedDevice) -> Words:
        refused, pool = self._charged(item)
        if pool is None or refused is None or isinstance(refused, CounterShortage):
            return ""
        return GroupsDiffer(refused, self._holders.of_counter_set(pool, refused.counter_set))

    def _counter_problem(self, item: PublishedDevice) -> Words:
        refused, pool = self._charged(item)
        if pool is None or not isinstance(refused, CounterShortage):
            return ""
        return describe_counters(refused, self._holders.of_counter_set(pool, refused.counter_set))

    def _charged(self, item: PublishedDevice) -> tuple[CounterShortage | GroupClash | None, Pool | None]:
        """What forbids a device beside those in use, and its pool; a device that others share is charged already."""
        pool = self.view.pool_seen.get(item.slice.pool)
        if not item.device.consumes_counters or pool is None:
            return None, None
        if item.device.allow_multiple_allocations and item.id in self.view.cycle.state.consumed:
            return None, None
        return self.view.cycle.ledger().charge(pool, item.device), pool

    def needed_on(self, node: str) -> int:
        """Number of devices that the request needs on a node; in mode All every device that it selects there."""
        if self.spec.allocation_mode != ALL:
            return self.spec.count
        selected = 0
        for position in self.failures.shape(node):
            if position is None or self.stages[position].name in _SELECTED:
                selected += 1
        return max(1, selected)

    def usable_on(self, node: str) -> list[PublishedDevice]:
        """The devices of a node that are left for the request by itself."""
        return [item for item, position in self.failures.on_node(node) if position is None]

    def matching(self, items: Iterable[PublishedDevice]) -> Sequence[PublishedDevice]:
        """Those of some devices that satisfy the selectors of the class and of the request."""
        left = [*items]
        for expression in (*self.device_class.selectors, *self.spec.selectors):
            verdicts = judge(self.view.cycle.selectors, expression or "", [item.device for item in left])
            left = [item for item, verdict in zip(left, verdicts, strict=True) if verdict is None]
        return left

    def selected(self) -> Iterator[PublishedDevice]:
        """The devices that are what the request asks for, whether they can be had or not."""
        return (item for item, position in self.failures.each() if position is None or position > self._selected)

    def observed(self, stage: StageResult, term: Program) -> tuple[Observation, ...]:
        """What the devices that fail at a stage have of what a term reads."""
        of_stage = self._observed.of(stage, lambda _: ByIdentity())
        return of_stage.of(term, lambda _: observations(term, stage.failed))

    def lost_on(
        self, nodes: Iterable[str], position: int
    ) -> tuple[tuple[PublishedDevice, ...], tuple[Words, ...], int]:
        """The devices of nodes that fail at a stage, the reasons, and how many are left after it.

        A device seen by several nodes counts once.
        """
        lost: list[PublishedDevice] = []
        remaining = 0
        for item, failed_at in self.failures.on_nodes(nodes):
            if failed_at == position:
                lost.append(item)
            elif failed_at is None or failed_at > position:
                remaining += 1
        return tuple(lost), self.failures.reasons(lost, position), remaining

    def shortfall(self, node: str) -> Shortfall | None:
        """The stage at which a node has too few devices left and a sentence; None if it keeps enough."""
        if node not in self._shortfalls:
            self._shortfalls[node] = self._shortfall(node)
        return self._shortfalls[node]

    def _shortfall(self, node: str) -> Shortfall | None:
        shape = self.failures.shape(node)
        if not shape:
            obsolete = tuple(pool for pool, nodes in self.view.obsolete.items() if node in nodes)
            text: Words = PoolObsolete(obsolete) if obsolete else say("no devices published for it")
            return Shortfall(0, 0, text, self.name)
        if shape in self._short_shapes:
            return self._short_shapes[shape]
        short = self._short_shape(node, shape)
        if short is None or told_by_numbers(self.stages[short.position]):
            self._short_shapes[shape] = short
        return short

    def _short_shape(self, node: str, shape: Shape) -> Shortfall | None:
        needed = self.needed_on(node)
        remaining = len(shape)
        for position, stage in enumerate(self.stages):
            lost = shape.count(position)
            kept = remaining - lost
            # A node with too few devices from the start falls short where it loses one, or has all that it can have.
            if kept < needed and (lost or position == self._selected):
                first = "" if told_by_numbers(stage) else self._first_reason(node, position)
                return Shortfall(position, kept, story(stage, remaining, lost, needed, first), self.name)
            remaining = kept
        return None

    def _first_reason(self, node: str, position: int) -> Words:
        """The most frequent reason why devices of a node fail at a stage."""
        failures = self.failures
        lost = (item for item, failed_at in failures.on_node(node) if failed_at == position)
        reasons = counted(failures.reasons(lost, position))
        return reasons[0][0] if reasons else ""

    def best_node(self) -> tuple[str, int]:
        """The node with the most usable devices (the first of equals) and their number; empty if none has any."""
        best = ("", 0)
        for node in self.view.nodes:
            count = self.failures.shape(node.name).count(None)
            if count > best[1]:
                best = (node.name, count)
        return best

    def left_on(self, node: str, position: int) -> int:
        """Number of devices that a node has left after a stage."""
        return sum(1 for failed in self.failures.shape(node) if failed is None or failed > position)

    def lost_at(self, name: StageName) -> list[PublishedDevice]:
        """The devices that fail at the stages of this name; there may be one for each term of a selector."""
        return [item for stage in self.stages if stage.name is name for item in stage.failed]

    @cached_property
    def blocking_stage(self) -> StageResult | None:
        """The latest stage at which a node falls short, or None if some node keeps enough devices."""
        latest = 0
        for node in self.view.nodes:
            short = self.shortfall(node.name)
            if short is None:
                return None
            latest = max(latest, short[0])
        if latest:
            return self.stages[latest]
        return next((stage for stage in self.stages if not stage.passed), self.stages[0])
