"""Requests compared with all devices of a snapshot, free or not: their number, their capacity, what they have alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS, RequestAlternative, alternatives, constraints
from kubectl_dra.lint.analysis.cluster_devices import DeviceOnNode, admitted_places, hidden, placed, seen_in_part
from kubectl_dra.lint.analysis.selector_targets import class_programs, selectors
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import fields_at
from kubectl_dra.text import amount as counted
from kubectl_dra.text import some

if TYPE_CHECKING:
    from kubectl_dra.api.quantity import Quantity
    from kubectl_dra.api.slices import Device

_ANY: Final = 1_000_000
"""Number that a device counts for if several requests can have it at once."""


class _Candidates(Struct, frozen=True):
    """An alternative with the devices that its class and selectors admit, and of them those with its capacity."""

    alternative: RequestAlternative
    admitted: Sequence[DeviceOnNode]
    fitting: Sequence[DeviceOnNode]

    @property
    def number(self) -> int:
        return self.alternative.number

    def by_node(self, values: Sequence[Sequence[Hashable]]) -> Mapping[Hashable, Counter[str]]:
        """Number of fitting devices by node and value; node "" for those that are not of one node alone."""
        table: dict[Hashable, Counter[str]] = defaultdict(Counter)
        for device, own in zip(self.fitting, values, strict=True):
            for value in own:
                table[value][device.node] += _ANY if device.device.allow_multiple_allocations else 1
        return table


class ExceedsDevices(
    Rule,
    code="DRA424",
    name="request-exceeds-devices",
    severity="error",
    kinds=CLAIM_KINDS,
    scope="set",
    told_by=("DRA302", "DRA305", "DRA601", "DRA606"),
):
    """A number, a capacity or a constraint that the devices of no node can satisfy, free or not."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        snapshot = context.snapshot
        if snapshot is None or hidden(context, "ResourceSlice"):
            return
        # One device, of which nothing more is asked, is what DRA221 is about.
        plain = not any(constraints(context))
        known = [
            None
            if plain and alternative.number == 1 and not _wanted(alternative)
            else _candidates(context, alternative)
            for alternative in alternatives(context)
        ]
        found: dict[str, list[LintFinding]] = {}
        possible: set[str] = set()
        for alternative, candidates in zip(alternatives(context), known, strict=True):
            # Where no device passes the selectors, DRA221 says why.
            own = self._alone(context, candidates) if candidates is not None and candidates.admitted else None
            if candidates is None or (candidates.admitted and own is None):
                possible.add(alternative.request)
            if own is not None:
                found.setdefault(alternative.request, []).append(own)
        for request, findings in found.items():
            # Another alternative of firstAvailable may be possible here: that is what it is for.
            yield from findings if request not in possible else ()
        for path, constraint, names in constraints(context):
            for field in ("matchAttribute", "distinctAttribute"):
                attribute = constraint.get(field)
                if isinstance(attribute, str) and attribute:
                    covered = _covered(alternatives(context), known, names, possible)
                    yield from self._constrained((*path, field), attribute, covered)

    def _alone(self, context: Context, candidates: _Candidates) -> LintFinding | None:
        """What one request asks for and no node has."""
        alternative = candidates.alternative
        if not candidates.fitting:
            return self._capacity(context, candidates)
        if alternative.number == 1:
            return None
        nodes = candidates.by_node([(None,)] * len(candidates.fitting))[None]
        node, most = _most(nodes)
        if most >= alternative.number:
            return None
        where = f" ({node})" if node else ""
        return self.finding(
            (*alternative.path, "count"),
            f"no node has {alternative.number} devices that match request {alternative.name}, free or not: "
            f"the most are {most}{where}",
            fix=f"Ask for {most} at most, or spread the work over several pods.",
        )

    def _capacity(self, context: Context, candidates: _Candidates) -> LintFinding:
        path: FieldPath = (*candidates.alternative.path, "capacity", "requests")
        wanted, total = _wanted(candidates.alternative) or {}, len(candidates.admitted)
        devices = f"the {total} devices that match" if total > 1 else "the one device that matches"
        for name, amount in wanted.items():
            if any(_has(context, device.device, {name: amount}) for device in candidates.admitted):
                continue
            largest, whose = _largest(candidates.admitted, name)
            if largest is None:
                message = f"none of {devices} has a capacity {name}"
                has = sorted({name for device in candidates.admitted for name in device.device.capacity})
                return self.finding(
                    (*path, name), message, fix=f"They have {', '.join(has)}." if has else None, on_key=True
                )
            most = f"the most is {largest} ({whose})"
            text = f"none of {devices} has so much {name}: {amount} is asked for, {most}"
            if amount <= largest:
                text = f"none of {devices} gives {amount} of {name}, as their request policies say; {most}"
            return self.finding((*path, name), text, fix="Ask for less, or for several devices with count.")
        return self.finding(path, f"none of {devices} has all of these amounts together", on_key=True)

    def _constrained(
        self, path: FieldPath, attribute: str, covered: Mapping[str, Sequence[_Candidates]]
    ) -> Iterator[LintFinding]:
        """What the requests of a constraint must have alike and no devices of one node have."""
        from kubectl_dra.allocation.constraints import values_of

        matched = path[-1] == "matchAttribute"
        tables: dict[str, list[tuple[int, Mapping[Hashable, Counter[str]]]]] = {}
        for request, options in covered.items():
            for candidates in options:
                own = [values_of(place.device, attribute) for place in candidates.fitting]
                if not any(own):
                    continue
                values = [tuple(few) if matched else (None,) * bool(few) for few in own]
                tables.setdefault(request, []).append((candidates.number, candidates.by_node(values)))
            if request not in tables:
                total = sum(len(candidates.fitting) for candidates in options)
                yield self.finding(
                    path,
                    f"none of the {counted(total)} that match request {request} has the attribute "
                    f"{attribute}, and each must have it",
                    fix=_published(options),
                )
                return
        if not tables or _together(tables):
            return
        asked = " and ".join(f"{number} for request {name}" for name, ((number, _), *_) in tables.items())
        what = "with one value of" if matched else "that have"
        yield self.finding(
            path,
            f"no node has devices {what} {attribute} for all that is asked ({asked}), free or not",
            fix="Ask for fewer devices, or leave the constraint out.",
        )


def _published(options: Sequence[_Candidates]) -> str:
    """The attributes that all of the devices have, or what to do without one."""
    from kubectl_dra.cel.device import split_name

    common: set[str] | None = None
    for device in (place.device for candidates in options for place in candidates.fitting):
        own = {"/".join(split_name(name, device.driver)) for name in device.attributes}
        common = own if common is None else common & own
    # Standard names first: it is those that constraints are mostly about.
    names = sorted(common or (), key=lambda name: (not name.startswith("resource.kubernetes.io/"), name))
    return f"All of them have {some(names)}." if names else "Leave the constraint out."


def _together(tables: Mapping[str, Sequence[tuple[int, Mapping[Hashable, Counter[str]]]]]) -> bool:
    """Whether some node has enough devices of one value for each of the requests."""
    every = [table for options in tables.values() for _, table in options]
    for value in {value for table in every for value in table}:
        for node in {"", *(node for table in every for node in table.get(value, ()))}:
            if all(
                any(_there(table.get(value, Counter()), node) >= number for number, table in options)
                for options in tables.values()
            ):
                return True
    return False


def _there(nodes: Counter[str], node: str) -> int:
    return nodes[node] + (nodes[""] if node else 0)


def _most(nodes: Counter[str]) -> tuple[str, int]:
    """The node with the most devices, and their number."""
    node = max(nodes, key=lambda name: (bool(name), nodes[name]))
    return node, _there(nodes, node)


def _candidates(context: Context, alternative: RequestAlternative) -> _Candidates | None:
    """The devices for an alternative; None if that cannot be told, as a name is wrong or slices are missing."""
    snapshot = context.snapshot
    own = [selector.program for selector in selectors(context) if selector.path[:-4] == alternative.path]
    of_class = class_programs(context, alternative.device_class)
    compiled = [program for program in own if program is not None]
    wanted = _wanted(alternative)
    if snapshot is None or of_class is None or len(compiled) < len(own) or wanted is None:
        return None
    attributes = [
        str(constraint.get(field))
        for _, constraint, _ in constraints(context)
        for field in ("matchAttribute", "distinctAttribute")
    ]
    admitted_of_class = placed(snapshot, of_class, compiled, attributes)
    if not admitted_of_class or seen_in_part(snapshot, admitted_of_class):
        return None
    admitted = admitted_places(admitted_of_class, compiled)
    if not context.target.has("DRAConsumableCapacity"):
        wanted = {}
    fitting = [device for device in admitted if not wanted or _has(context, device.device, wanted)]
    return _Candidates(alternative, admitted, fitting)


def _covered(
    options: Sequence[RequestAlternative],
    known: Sequence[_Candidates | None],
    names: Sequence[str],
    possible: set[str],
) -> Mapping[str, Sequence[_Candidates]]:
    """The candidates of the requests that a constraint covers, without requests that fail alone or are not known."""
    covered: dict[str, list[_Candidates]] = {}
    unknown: set[str] = set()
    for alternative, candidates in zip(options, known, strict=True):
        if not alternative.is_named(names):
            # Another alternative of the request is free of the constraint.
            unknown.add(alternative.request)
        elif candidates is None or alternative.request not in possible:
            unknown.add(alternative.request)
        elif candidates.fitting:
            covered.setdefault(alternative.request, []).append(candidates)
    return {name: candidates for name, candidates in covered.items() if name not in unknown}


def _wanted(alternative: RequestAlternative) -> Mapping[str, Quantity] | None:
    """The requested amounts by name; None if one cannot be read."""
    from kubectl_dra.api.quantity import Quantity, QuantityError

    try:
        return {
            str(name): Quantity.from_json(amount)
            for name, amount in fields_at(alternative.content, "capacity", "requests").items()
        }
    except QuantityError:
        return None


def _has(context: Context, device: Device, wanted: Mapping[str, Quantity]) -> bool:
    from kubectl_dra.allocation.capacity import shortage

    return shortage(device, wanted, {}, {}, fractional=context.target.has("DRAFractionalCapacityRange")) is None


def _largest(places: Sequence[DeviceOnNode], name: str) -> tuple[Quantity | None, str]:
    """The largest value of a capacity, and the device that has it."""
    from kubectl_dra.api.quantity import Quantity

    largest, whose = None, ""
    for device, node in places:
        if name not in device.capacity:
            continue
        value = Quantity.parse(device.capacity[name].get("value", "0"))
        if largest is None or value > largest:
            largest, whose = value, f"{device.name} on {node}" if node else device.name
    return largest, whose


RULES = (ExceedsDevices,)
