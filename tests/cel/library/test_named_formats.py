"""Named formats. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    '!format.dns1123Label().validate("a-1").hasValue()',
    'format.dns1123Label().validate("A").hasValue()',
    'format.dns1123Label().validate("a.b").value() == ["must not contain dots"]',
    '!format.dns1123Subdomain().validate("a.b-c").hasValue()',
    'format.dns1035Label().validate("1a").hasValue()',
    '!format.labelValue().validate("").hasValue()',
    '!format.qualifiedName().validate("example.com/A_b").hasValue()',
    'format.qualifiedName().validate("/b").value().size() == 1',
    'format.qualifiedName().validate("a/b/c").hasValue()',
    '!format.dns1123LabelPrefix().validate("a-").hasValue()',
    '!format.dns1035LabelPrefix().validate("a-").hasValue()',
    '!format.dns1123SubdomainPrefix().validate("a.b-").hasValue()',
    '!format.uuid().validate("123E4567-e89b-12d3-a456-426614174000").hasValue()',
    '!format.uuid().validate("123e4567e89b12d3a456426614174000").hasValue()',
    'format.uuid().validate("x").value() == ["does not match the UUID format"]',
    '!format.byte().validate("aGk=").hasValue()',
    'format.byte().validate("a").value() == ["invalid base64"]',
    'format.byte().validate("").hasValue()',
    '!format.date().validate("2024-02-29").hasValue()',
    'format.date().validate("2023-02-29").value() == ["invalid date"]',
    '!format.datetime().validate("2024-02-29t23:59:59.1+01:00").hasValue()',
    'format.datetime().validate("2024-02-29T24:00:00Z").value() == ["invalid datetime"]',
    '!format.uri().validate("https://h/").hasValue()',
    'format.uri().validate("h").value() == ["parse \\"h\\": invalid URI for request"]',
    'format.named("uuid").value() == format.uuid()',
    '!format.named("none").hasValue()',
    "format.uuid() != format.byte()",
]

ERRORS = [
    ('format.uuid() == dyn("uuid")', "no such overload"),
    ('format.named("none").value().validate("a").hasValue()', "optional.none() dereference"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
