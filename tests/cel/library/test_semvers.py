"""Semantic versions in expressions. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    'semver("1.2.3").major() == 1',
    'semver("1.2.3").minor() == 2',
    'semver("1.2.3").patch() == 3',
    'semver("1.10.0").isGreaterThan(semver("1.9.0"))',
    'semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))',
    'semver("1.2.3+a") == semver("1.2.3+b")',
    'semver("1.2.3").compareTo(semver("1.2.4")) == -1',
    'semver("v1.2", true) == semver("1.2.0")',
    'semver("01.02.03", true) == semver("1.2.3")',
    'isSemver("1.2.3")',
    '!isSemver("v1.2.3")',
    'isSemver("v1.2.3", true)',
    '!isSemver("1.2")',
    '!isSemver("", true)',
    'semver("18446744073709551615.0.0").major() == -1',
]

ERRORS = [
    ('semver("v1.2.3") == semver("1.2.3")', 'Invalid character(s) found in major number "v1"'),
    ('semver("1.2-rc", true) == semver("1.2.3")', "short version cannot contain PreRelease/Build meta data"),
    ('semver("1.2.3") == dyn("1.2.3")', "no such overload"),
    ('semver("1.2") == semver("1.2.0")', "No Major.Minor.Patch elements found"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
