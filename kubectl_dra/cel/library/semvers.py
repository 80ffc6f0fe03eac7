"""Semantic versions: semver("1.2.3") and its functions."""

from __future__ import annotations

from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.libraries import REPAIRED_SEMVERS, SEMVERS
from kubectl_dra.cel.library.support import (
    NOMINAL,
    accepted,
    comes_after,
    comes_before,
    declared,
    member,
    overload,
    parsing,
    reading,
)
from kubectl_dra.cel.types import BOOL, INT, SEMVER, STRING


def _semver(text: str, normalise: bool = False) -> Semver:
    return Semver.parse_normalised(text) if normalise else Semver.parse(text)


def _int64(value: int) -> int:
    return value if value < 2**63 else value - 2**64


def functions() -> list[Function]:
    text, two = (STRING,), (SEMVER, SEMVER)
    read, parse, accepts = reading(), parsing(_semver, SemverError), accepted(_semver, SemverError)
    return declared(
        "semantic versions",
        {
            "semver": [
                overload("string_to_semver", text, SEMVER, parse, read),
                overload("string_bool_to_semver", (STRING, BOOL), SEMVER, parse, read, REPAIRED_SEMVERS),
            ],
            "isSemver": [
                overload("is_semver_string", text, BOOL, accepts, read),
                overload("is_semver_string_bool", (STRING, BOOL), BOOL, accepts, read, REPAIRED_SEMVERS),
            ],
            "isGreaterThan": [member("semver_is_greater_than", two, BOOL, comes_after, NOMINAL)],
            "isLessThan": [member("semver_is_less_than", two, BOOL, comes_before, NOMINAL)],
            "compareTo": [member("semver_compare_to", two, INT, Semver.compare, NOMINAL)],
            "major": [member("semver_major", (SEMVER,), INT, lambda version: _int64(version.major), NOMINAL)],
            "minor": [member("semver_minor", (SEMVER,), INT, lambda version: _int64(version.minor), NOMINAL)],
            "patch": [member("semver_patch", (SEMVER,), INT, lambda version: _int64(version.patch), NOMINAL)],
        },
        version=SEMVERS,
    )
