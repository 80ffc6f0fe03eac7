"""Rows that no recorded answer decides: each is changed, and some answer of a real server has to differ then.

Left out: rows about schedulers, and what only servers before 1.34 did, of which none is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from msgspec.structs import replace

from kubectl_dra.api import behaviour, dra_fields, schema
from kubectl_dra.api.behaviour import Aspect, Behaviour
from kubectl_dra.api.releases import NEWEST_MODELLED, Releases
from kubectl_dra.api.schema import Field
from tests.api.tables import forget
from tests.conformance import conversions, manifests
from tools.recorder.recorded import lines

DATA = Path(__file__).parent / "data"
FIRST: Final = 34
FILES = (
    *(f"{kind}-1.{minor}" for kind in ("conversions", "manifests") for minor in range(FIRST, 38)),
    *("conversions", "manifests", "pod-admission", "pod-manifests"),
)
SHARED: Final = frozenset(value for value in vars(schema).values() if isinstance(value, int))
"""Limits that validation knows by the name of the constant."""
GATE_ON = "no recorded server with the gate off was sent the field in a way that its answer shows"
NOT_LONGER = "no recorded list is longer; the limit is that of the API's types"
IN_MESSAGES = "for messages and editors: each of the texts has a rule of its own"
UNSEEN_COLUMNS: Final = {
    "CapacityRequestPolicy.validValues most since 31": NOT_LONGER,
    "Device.taints gates": GATE_ON,
    "DeviceCounterConsumption.compatibilityGroups most since 37": NOT_LONGER,
    "DeviceRequest.firstAvailable gates": GATE_ON,
    "DeviceRequestAllocationResult.adminAccess gates": GATE_ON,
    "DeviceRequestAllocationResult.consumedCapacity gates": GATE_ON,
    "DeviceSubRequest.tolerations gates": GATE_ON,
    "DeviceToleration.operator values": IN_MESSAGES,
    "ExactDeviceRequest.adminAccess gates": GATE_ON,
    "ExactDeviceRequest.allocationMode values": IN_MESSAGES,
    "ExactDeviceRequest.tolerations gates": GATE_ON,
    "NodeAllocatableResourceMapping.allocationMultiplier default": "no recorded 1.36 has stored one without it",
    "ResourceClaimStatus.devices gates": GATE_ON,
}
_SCHEDULERS = "words of the scheduler: test_recorded.py compares them"
_STANDARDS = "of the pod security standards: tests/admission/test_pod_security.py has the words of a real server"
UNSEEN_BEHAVIOUR: Final[Mapping[str, str]] = {
    "DISABLED_DROPPED_FIRST": "read in the source: differs only for a share of a device while shares are off",
    "ERRORS_NAME_DEVICE": _SCHEDULERS,
    "FEWER_COSTLY_DEVICES": "no recorded slice has so many devices: tests/admission/server/test_rules.py",
    "GANG_POLICY_CHANGES": "no recording changes a PodGroup: tests/cluster/test_apply.py",
    "GROUP_IN_ONE_CYCLE": _SCHEDULERS,
    "OWN_USERS_EXEMPT": _STANDARDS,
    "PREEMPTION_TERSE": _SCHEDULERS,
    "PROBE_HOSTS_REFUSED": _STANDARDS,
    "VALUES_LIMITED": "no recorded device has so many values: tests/admission/server/test_rules.py",
}


class Answer(NamedTuple):
    """How we answer a recorded case, what the server answered, and the text of the case."""

    text: str
    ask: Callable[[], object]
    expected: object


@cache
def answers() -> tuple[Answer, ...]:
    """The recorded creations, updates and conversions."""
    out = []
    for file in FILES:
        for case in lines(DATA / f"{file}.jsonl.gz"):
            told = case.get("expect")
            ask = conversions.disagreements if told is None else pairs_of
            expected = [] if told is None else (told["code"], manifests.recorded_pairs(told))
            out.append(Answer(json.dumps(case), partial(safely, ask, case), expected))
    return tuple(out)


def pairs_of(case: dict[str, Any]) -> object:
    verdict = manifests.answered(case)
    return verdict.code, manifests.our_pairs(verdict)


def safely(ask: Callable[[dict[str, Any]], object], case: dict[str, Any]) -> object:
    """The answer, or the error that a changed table leads to."""
    try:
        return ask(case)
    except Exception as error:
        return type(error)


def decides(word: str) -> bool:
    """Whether an answer to a case with the word in it differs from the recorded one."""
    return any(answer.ask() != answer.expected for answer in answers() if word in answer.text)


def changes(field: Field) -> Iterator[tuple[str, Field]]:
    """The row with one column changed at a time, as far as a recorded server could tell."""
    if field.gates:
        yield "gates", replace(field, gates=())
    if field.since >= FIRST:
        yield "since", replace(field, since=field.since + 1)
    if field.until is not None and field.until >= FIRST:
        yield "until", replace(field, until=field.until - 1)
    if field.default is not None and field.default != dra_fields.CREATION:
        yield "default", replace(field, default=None)
    if field.dropped_since > FIRST:
        yield "dropped_since", replace(field, dropped_since=FIRST)
    if field.check:
        yield "check", replace(field, check="")
    if field.values:
        yield "values", replace(field, values=())
    for since, most in field.most:
        if since <= NEWEST_MODELLED.minor and most not in SHARED:
            yield f"most since {since}", replace(field, most=tuple(each for each in field.most if each[0] != since))


def places(struct: str, name: str, column: str) -> Iterator[dict[str, Any]]:
    """The tables in which to change a row: ``values`` are looked up by the field's name."""
    for version in (dra_fields._STRUCTS, dra_fields._V1BETA1):
        for other, table in version.items():
            if name in table and (other == struct or column == "values"):
                assert isinstance(table, dict)
                yield table


def unseen_columns() -> Iterator[str]:
    """Each column of a row of v1 that no answer depends on."""
    done: set[str] = set()
    for struct in dra_fields._STRUCTS:
        for name, field in dra_fields.fields(struct).items():
            for column, changed in changes(field):
                if column == "values" and name in done:
                    continue
                done.update([name] if column == "values" else [])
                with pytest.MonkeyPatch.context() as patch:
                    for table in places(struct, name, column):
                        patch.setitem(table, name, changed)
                    forget()
                    if not decides("" if column == "default" else f'"{name}"'):
                        yield f"{struct}.{name} {column}"
    forget()


@pytest.mark.exhaustive
def test_each_column_of_a_field_is_seen_in_a_recorded_answer() -> None:
    assert all(answer.ask() == answer.expected for answer in answers())
    assert set(unseen_columns()) == UNSEEN_COLUMNS.keys()


def unseen_behaviour() -> Iterator[str]:
    """Each row of what servers do differently that, turned round, changes no answer."""
    real = Releases.__contains__
    for name, row in vars(behaviour).items():
        if isinstance(row, Behaviour) and row.about is not Aspect.SCHEDULER and (row.until or row.since >= FIRST):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Releases, "__contains__", lambda self, other, row=row: real(self, other) != (self is row))
                if not decides(""):
                    yield name


@pytest.mark.exhaustive
def test_each_row_of_what_servers_do_is_seen_in_a_recorded_answer() -> None:
    assert set(unseen_behaviour()) == UNSEEN_BEHAVIOUR.keys()


def test_what_is_excused_exists() -> None:
    for place in UNSEEN_COLUMNS:
        struct, _, name = place.partition(" ")[0].partition(".")
        assert name in dra_fields.fields(struct), place
    assert all(isinstance(vars(behaviour)[name], Behaviour) for name in UNSEEN_BEHAVIOUR)
