"""Semantic versions: semver("1.2.3") and its functions."""

from __future__ import annotations

from typing import Any

from kubectl_dra.api.semver import Semver, SemverError
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.known_sizes import STRING_TRAVERSAL_FACTOR
from kubectl_dra.cel.libraries import REPAIRED_SEMVERS, SEMVERS
from kubectl_dra.cel.library.support import (
    function,
    member,
    nominal_actual,
    nominal_estimate,
    overload,
    scan_first_argument,
    scan_first_value,
)
from kubectl_dra.cel.types import BOOL, INT, SEMVER, STRING

_LIBRARY = "semantic versions"


def _semver(text: str, normalise: bool = False) -> Semver:
    try:
        return Semver.parse_normalised(text) if normalise else Semver.parse(text)
    except SemverError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, normalise: bool = False) -> bool:
    try:
        _semver(text, normalise)
    except EvaluationError:
        return False
    return True


def _int64(value: int) -> int:
    return value if value < 2**63 else value - 2**64


def _major(version: Semver) -> int:
    return _int64(version.major)


def _minor(version: Semver) -> int:
    return _int64(version.minor)


def _patch(version: Semver) -> int:
    return _int64(version.patch)


def _is_greater(left: Semver, right: Semver) -> bool:
    return left.compare(right) > 0


def _is_less(left: Semver, right: Semver) -> bool:
    return left.compare(right) < 0


def _compare(left: Semver, right: Semver) -> int:
    return left.compare(right)


def functions() -> list[Function]:
    costs: dict[str, Any] = {
        "estimate": scan_first_argument(STRING_TRAVERSAL_FACTOR),
        "actual": scan_first_value(),
    }
    nominal: dict[str, Any] = {"estimate": nominal_estimate, "actual": nominal_actual, "version": SEMVERS}

    def of_version(name: str, documentation: str, example: str, *overloads: Overload) -> Function:
        return function(name, _LIBRARY, documentation, (example,), overloads)

    return [
        of_version(
            "semver",
            "The version a text is; with true, a leading v, leading zeros and missing parts are repaired.",
            'semver("v1.2", true) == semver("1.2.0")',
            overload("string_to_semver", (STRING,), SEMVER, _semver, version=SEMVERS, **costs),
            overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver, version=REPAIRED_SEMVERS, **costs),
        ),
        of_version(
            "isSemver",
            "Whether semver() takes the text.",
            'isSemver("1.2.3") && !isSemver("v1.2") && isSemver("v1.2", true)',
            overload("is_semver_string", (STRING,), BOOL, _is_semver, version=SEMVERS, **costs),
            overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver, version=REPAIRED_SEMVERS, **costs),
        ),
        of_version(
            "isGreaterThan",
            "Whether a version comes after another one.",
            'semver("1.10.0").isGreaterThan(semver("1.9.0"))',
            member("semver_is_greater_than", (SEMVER, SEMVER), BOOL, _is_greater, **nominal),
        ),
        of_version(
            "isLessThan",
            "Whether a version comes before another one.",
            'semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))',
            member("semver_is_less_than", (SEMVER, SEMVER), BOOL, _is_less, **nominal),
        ),
        of_version(
            "compareTo",
            "1, 0 or -1 by precedence; build metadata does not count. There is no >= on versions.",
            'semver("1.2.3+a").compareTo(semver("1.2.3")) == 0',
            member("semver_compare_to", (SEMVER, SEMVER), INT, _compare, **nominal),
        ),
        of_version(
            "major",
            "The first number.",
            'semver("1.2.3").major() == 1',
            member("semver_major", (SEMVER,), INT, _major, **nominal),
        ),
        of_version(
            "minor",
            "The second number.",
            'semver("1.2.3").minor() == 2',
            member("semver_minor", (SEMVER,), INT, _minor, **nominal),
        ),
        of_version(
            "patch",
            "The third number.",
            'semver("1.2.3").patch() == 3',
            member("semver_patch", (SEMVER,), INT, _patch, **nominal),
        ),
    ]
