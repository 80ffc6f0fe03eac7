"""Named formats of Kubernetes: format.dns1123Label().validate(text) and its relatives."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from kubectl_dra.cel.errors import no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.known_sizes import REGEX_LENGTH_FACTOR, STRING_TRAVERSAL_FACTOR, CallEstimate, Cost, Operands
from kubectl_dra.cel.libraries import NAMED_FORMATS
from kubectl_dra.cel.library import numbers
from kubectl_dra.cel.library.regex import pattern_cost
from kubectl_dra.cel.library.support import NOMINAL, actual_size, declared, member, overload
from kubectl_dra.cel.types import FORMAT, STRING, list_of, optional_of
from kubectl_dra.cel.values import OPTIONAL_NONE, OptionalValue, Value

_ASSUMED_PATTERN_SIZE = 128

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_TIME = "([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})"


class NamedFormat:
    """A check with a name. `pattern_size` is the length of the pattern that determines its cost."""

    __slots__ = ("check", "name", "pattern_size")

    cel_type = FORMAT

    def __init__(self, name: str, check: Callable[[str], list[str]], pattern_size: int) -> None:
        self.name = name
        self.check = check
        self.pattern_size = pattern_size

    def cel_equals(self, other: Value) -> bool:
        if other.__class__ is not NamedFormat:
            raise no_such_overload()
        return bool(self.name == other.name)


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def _mismatch(what: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{what} (e.g. {shown}regex used for validation is '{pattern}')"


def _matching(limit: int, pattern: str, what: str, *examples: str) -> Callable[[str], list[str]]:
    """Texts of so many bytes that have a form; ``what`` is the rule in words."""

    def check(text: str) -> list[str]:
        problems = _too_long(text, limit)
        return problems if re.fullmatch(pattern, text) else [*problems, _mismatch(what, pattern, *examples)]

    return check


_lower_label = _matching(
    63,
    _LABEL,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    "my-name",
    "123-abc",
)
_subdomain = _matching(
    253,
    _SUBDOMAIN,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    "example.com",
)
_dns_1035_label = _matching(
    63,
    _DNS_1035,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character",
    "my-name",
    "abc-123",
)
_label_value = _matching(
    63,
    f"({_NAME})?",
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    "MyValue",
    "my_value",
    "12345",
)


def _label(text: str) -> list[str]:
    if re.fullmatch(_SUBDOMAIN, text) and not re.fullmatch(_LABEL, text):
        return [*_too_long(text, 63), "must not contain dots"]
    return _lower_label(text)


def _as_prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Check a name prefix, which may end with a dash."""

    def checked(text: str) -> list[str]:
        # Upstream drops the character before the dash, too.
        return check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return checked


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    wrong = _mismatch(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character",
        _NAME,
        "MyName",
        "my.name",
        "123-abc",
    )
    if len(parts) > 2:
        return [f"a valid label key {wrong} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        problems += [f"prefix part {problem}" for problem in _subdomain(parts[0]) if parts[0]]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63)]
    if not re.fullmatch(_NAME, name):
        problems.append(f"name part {wrong}")
    return problems


def _uri(text: str) -> list[str]:
    from kubectl_dra.cel.library.urls import URLError, parse_request_url

    try:
        parse_request_url(text)
    except URLError as error:
        return [str(error)]
    return []


def _uuid(text: str) -> list[str]:
    return [] if re.fullmatch(_UUID, text, re.IGNORECASE | re.ASCII) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if re.fullmatch(_BASE64, text) else ["invalid base64"]


def _is_date(text: str) -> bool:
    return len(text) == 10 and numbers.parse_timestamp(f"{text}T00:00:00Z") is not None


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    parts = text.lower().split("t")
    if len(parts) > 1 and _is_date(parts[0]):
        match = re.fullmatch(_TIME, parts[1])
        if match and match[1] <= "23" and match[2] <= "59" and match[3] <= "59":
            return []
    return ["invalid datetime"]


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", _dns_1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _as_prefix(_label), 30),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _as_prefix(_subdomain), 60),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _as_prefix(_dns_1035_label), 30),
    "labelValue": NamedFormat("LabelValue", _label_value, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _uuid, 70),
    "byte": NamedFormat("byte", _byte, 84),
    "date": NamedFormat("date", _date, 71),
    "datetime": NamedFormat("datetime", _datetime, 71),
}


def _validate(named: NamedFormat, text: str) -> OptionalValue:
    problems = named.check(text)
    return OptionalValue(problems) if problems else OPTIONAL_NONE


def _named(name: str) -> OptionalValue:
    return OptionalValue(FORMATS[name]) if name in FORMATS else OPTIONAL_NONE


def _validate_estimate(operands: Operands) -> CallEstimate:
    read = operands.size(1).scaled(STRING_TRAVERSAL_FACTOR)
    return CallEstimate(read.scaled(_ASSUMED_PATTERN_SIZE * REGEX_LENGTH_FACTOR))


def _validate_actual(values: Sequence[Value], result: Value) -> int:
    if values[0].__class__ is not NamedFormat:
        return 1
    return pattern_cost(actual_size(values[1]), values[0].pattern_size)


def functions() -> list[Function]:
    validating = Cost(_validate_estimate, _validate_actual)
    problems = optional_of(list_of(STRING))
    return declared(
        "named formats",
        {
            "validate": [member("format-validate", (FORMAT, STRING), problems, _validate, validating)],
            "format.named": [overload("format-named", (STRING,), optional_of(FORMAT), _named, NOMINAL)],
            **{
                f"format.{name}": [overload(f"format.{name}", (), FORMAT, partial(FORMATS.__getitem__, name))]
                for name in FORMATS
            },
        },
        version=NAMED_FORMATS,
    )
