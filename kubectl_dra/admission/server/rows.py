"""What validation says of a field by its row alone: how many items, how long, in which form, which texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from kubectl_dra.admission.server.model import Path, ServerContext, Violations, check_list, check_set
from kubectl_dra.admission.server.names import (
    Format,
    check_format,
    check_length,
    label_key_problems,
    label_problems,
    label_value_problems,
    subdomain_problems,
)
from kubectl_dra.admission.server.taints import unsupported
from kubectl_dra.api.fields import fields
from kubectl_dra.api.schema import Field

_FORMS: Final[Mapping[str, Format]] = {
    "key": label_key_problems,
    "label": label_problems,
    "subdomain": subdomain_problems,
    "value": label_value_problems,
}


def check_rows(raw: Mapping[str, Any] | None, at: Path, struct: str, context: ServerContext) -> Violations:
    """The fields of a struct whose rows say all that is checked of them, in the order of the table."""
    for name, row in _checked(struct):
        value = (raw or {}).get(name)
        if value is not None:
            yield from _check_field(value, (*at, name), row, context)


@cache
def _checked(struct: str) -> tuple[tuple[str, Field], ...]:
    return tuple((name, row) for name, row in fields(struct).items() if row.check)


def _check_field(value: Any, at: Path, row: Field, context: ServerContext) -> Violations:
    rule, *how = row.check.split()
    most = row.limit(context.release)

    def item(value: str | None, at: Path) -> Violations:
        if row.values and value not in row.values:
            yield unsupported(value or "", at, rule, row.values)
        for form in how:
            if form in _FORMS:
                yield from check_format(value or "", at, rule, _FORMS[form])

    if not row.container:
        if most is not None:
            yield from check_length(value, at, most, rule)
        yield from item(value, at)
    elif "set" in how:
        yield from check_set(value, at, most, (rule, rule), item, context)
    else:
        yield from check_list(value, at, most, rule, item, context)
