"""Counters that devices share: the sets of a slice, and a device's consumption of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.fields import limit
from kubectl_dra.api.limits import MAX_COUNTERS
from kubectl_dra.lint.server.context import ServerContext
from kubectl_dra.lint.server.model import TOO_MANY, Path, Violations, check_set, missing, text, violation
from kubectl_dra.lint.server.names import check_format, check_required, label_problems


def check_counter_sets(sets: Any, at: Path, context: ServerContext) -> Violations:
    """``sharedCounters`` of a slice."""

    def check(counter_set: Mapping[str, Any] | None, at: Path) -> Violations:
        yield from check_required(text(counter_set, "name"), (*at, "name"), ("counter-set-name",) * 2, label_problems)
        rules = ("counters-missing", "counters-too-many", "counter-name")
        yield from _check_counters((counter_set or {}).get("counters"), (*at, "counters"), rules)

    most = limit("ResourceSliceSpec", "sharedCounters", context.release)
    rules = ("counter-sets-too-many", "counter-set-name")
    yield from check_set(sets, at, most, rules, check, lambda entry: text(entry, "name"))


def check_consumptions(consumptions: Any, at: Path, context: ServerContext) -> Violations:
    """``consumesCounters`` of a device."""

    def check(consumption: Mapping[str, Any] | None, at: Path) -> Violations:
        yield from check_required(
            text(consumption, "counterSet"), (*at, "counterSet"), ("consumes-set",) * 2, label_problems
        )
        rules = ("consumes-counters",) * 3
        yield from _check_counters((consumption or {}).get("counters"), (*at, "counters"), rules)

    most = limit("Device", "consumesCounters", context.release)
    rules = ("consumes-too-many", "consumes-duplicate")
    yield from check_set(consumptions, at, most, rules, check, lambda entry: text(entry, "counterSet"))


def _check_counters(counters: Mapping[str, Any] | None, at: Path, rules: tuple[str, str, str]) -> Violations:
    """Check counters; ``rules``: missing, too many, bad name."""
    if not counters:
        yield missing(at, rules[0], "must have at least one counter")
    elif len(counters) > MAX_COUNTERS:
        message = f"has {len(counters)} counters, at most {MAX_COUNTERS} are allowed"
        yield violation(at, TOO_MANY, rules[1], message)
    else:
        for name in counters:
            yield from check_format(name, at, rules[2], label_problems, below=(name,))
