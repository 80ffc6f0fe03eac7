"""Whether a device is selectable: class selectors, request selectors, then the device's own node scope."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import TYPE_CHECKING

from msgspec import Struct

from kubectl_dra.allocation.errors import AllocationCheck, AllocationError, ErrorDetail
from kubectl_dra.api.slices import Device, DeviceID
from kubectl_dra.by_identity import ByIdentity
from kubectl_dra.cel import CompileError, Environment, EvaluationError, Program, compile_expression
from kubectl_dra.cel.errors import ErrorKind

if TYPE_CHECKING:
    from kubectl_dra.cel.columns import DeviceTable
    from kubectl_dra.cel.device import Attribute

_OPTIONAL = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)
SelectorVerdict = bool | EvaluationError | CompileError


class Selectors:
    """Compiled CEL selectors and their verdicts. Each expression is compiled once, each device object judged once."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._programs: dict[str, Program | CompileError] = {}
        self._terms: dict[str, tuple[Program, ...]] = {}
        self._verdicts: dict[str, ByIdentity[Device, bool | EvaluationError]] = {}
        self._derived: dict[str, Program | CompileError] = {}
        self._attributes: dict[str, ByIdentity[Device, Attribute | EvaluationError]] = {}
        self._table: DeviceTable | None = None

    def program(self, expression: str) -> Program | CompileError:
        """The compiled expression, or the reason why it does not compile."""
        return self._compiled(self._programs, expression)

    def _compiled(
        self, known: dict[str, Program | CompileError], expression: str, *, derived: bool = False
    ) -> Program | CompileError:
        program = known.get(expression)
        if program is None:
            try:
                program = compile_expression(self.environment, expression, derived=derived)
            except CompileError as error:
                program = error
            known[expression] = program
        return program

    def terms(self, expression: str) -> tuple[Program, ...]:
        """The operands of the expression's top-level ``&&``; empty if it does not compile."""
        terms = self._terms.get(expression)
        if terms is None:
            program = self.program(expression)
            terms = () if isinstance(program, CompileError) else program.terms()
            self._terms[expression] = terms
        return terms

    def verdict(self, expression: str, device: Device) -> SelectorVerdict:
        """Whether the device satisfies the expression, or the error that prevents an answer."""
        known = self._verdicts.get(expression)
        verdict = known.get(device) if known is not None else None
        if verdict is None:
            program = self.program(expression)
            if isinstance(program, CompileError):
                return program
            if known is None:
                known = self._verdicts[expression] = ByIdentity()
            try:
                verdict = program.evaluate(device)
            except EvaluationError as error:
                verdict = error
            known.put(device, verdict)
        return verdict

    def verdicts(self, expression: str, devices: Sequence[Device]) -> list[SelectorVerdict]:
        """The verdict on each of many devices."""
        self.prefetch(expression, devices)
        known = self._verdicts.get(expression)
        if known is None:
            return [self.verdict(expression, device) for device in devices]
        return [*known.each(devices)]

    def accepted(self, expressions: Iterable[str | None], devices: Sequence[Device]) -> list[Device]:
        """The devices for which all selectors are true; none where one has no CEL."""
        undecided = list(devices)
        for expression in expressions:
            verdicts = self.verdicts(expression, undecided) if expression and undecided else ()
            undecided = [device for device, verdict in zip(undecided, verdicts, strict=False) if verdict is True]
        return undecided

    def refused_by(self, expressions: Sequence[str]) -> set[int]:
        """The devices, by their identity, of which it is known that the first selector that does not hold is false."""
        refused: set[int] = set()
        holds: set[int] | None = None
        for expression in expressions:
            judged = self._verdicts.get(expression)
            known = judged.by_id if judged is not None else {}
            reach = known if holds is None else {key: known[key] for key in holds if key in known}
            refused.update([key for key, verdict in reach.items() if verdict is False])
            holds = {key for key, verdict in reach.items() if verdict is True}
        return refused

    def derived(self, expression: str, device: Device) -> Attribute | EvaluationError | CompileError:
        """The attribute that an expression derives from the device's own, or the error that prevents it."""
        program = self._compiled(self._derived, expression, derived=True)
        if isinstance(program, CompileError):
            return program
        known = self._attributes.setdefault(expression, ByIdentity())
        value = known.get(device)
        if value is None:
            try:
                value = program.derived(device)
            except EvaluationError as error:
                value = error
            known.put(device, value)
        return value

    def prefetch(self, expression: str, devices: Sequence[Device]) -> None:
        """Judge many devices at once, which is faster than one by one."""
        program = self.program(expression)
        if isinstance(program, CompileError):
            return
        known = self._verdicts.setdefault(expression, ByIdentity())
        missing = known.without(devices)
        if missing:
            known.put_all(missing, program.evaluate_devices(self.table(missing)))

    def table(self, devices: Sequence[Device]) -> DeviceTable:
        """The columns of these devices that expressions read. The same devices get the same table again."""
        from kubectl_dra.cel.columns import DeviceTable

        known = self._table
        if known is None or len(known.devices) != len(devices) or not all(map(is_, known.devices, devices)):
            known = self._table = DeviceTable(devices)
        return known


class SelectorList(Struct, frozen=True):
    """The selectors of a class or of a claim's request, with the texts that errors use for them.

    The owner is ``device_class`` or ``claim``.
    """

    owner: str
    expressions: tuple[str | None, ...]
    device_class: str = ""
    claim: str = ""

    def admits(self, selectors: Selectors, device: Device, place: DeviceID, *, named: bool) -> bool:
        """Whether all selectors hold on the device; none is evaluated after the first false one.

        ``named``: errors name the device, as those of releases from 1.37 on do. Their details have its ``place`` in
        any case: devices of many places may be one object.

        Raises:
            AllocationError: a selector has no CEL, does not compile, or fails on the device.
        """
        for index, expression in enumerate(self.expressions):
            if expression is None:
                raise AllocationError(
                    f"{self.owner}: selector #{index}: CEL expression empty (unsupported selector type?)",
                    check=AllocationCheck.SELECTOR_EMPTY,
                    subject=self.owner,
                    detail=ErrorDetail(selector=index),
                )
            verdict = selectors.verdict(expression, device)
            if verdict is True:
                continue
            if verdict is False:
                return False
            raise AllocationError(
                _failure(f"{self.owner}: selector #{index}", verdict, place if named else None),
                check=AllocationCheck.CEL_COMPILE if isinstance(verdict, CompileError) else AllocationCheck.CEL_RUNTIME,
                subject=self.owner,
                detail=ErrorDetail(
                    claim=self.claim,
                    device_class=self.device_class,
                    expression=expression,
                    selector=index,
                    problem=verdict,
                    device=device,
                    place=place,
                ),
            )
        return True


def _failure(selector: str, error: EvaluationError | CompileError, place: DeviceID | None) -> str:
    """The scheduler's sentence; with a ``place`` as releases write it that name the device, and give advice."""
    if isinstance(error, CompileError):
        return f"{selector}: CEL compile error: {error}"
    if place is None:
        return f"{selector}: CEL runtime error: {error}"
    advice = _OPTIONAL if error.kind is ErrorKind.NO_KEY else ""
    return f"{selector} on device {place}: CEL runtime error: {error}{advice}"
