"""Keeps the series of a metric few, however many namespaces, classes or drivers a cluster has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

T = TypeVar("T")
Labels = tuple[str, ...]

MOST_GROUPS: Final = 200
"""Of one metric, combinations of labels."""
OTHERS: Final = "(others)"
"""The value of a label for all that have none of their own."""


def bounded(
    table: Mapping[Labels, T], merge: Callable[[T, T], T], weight: Callable[[T], float], most: int = MOST_GROUPS
) -> dict[Labels, T]:
    """The table with at most so many rows: the smallest values of the label that has most of them become one.

    ``merge`` makes one value of two, ``weight`` says which ones stay by themselves.
    """
    rows = dict(table)
    while len(rows) > most:
        weights: list[Counter[str]] = [Counter() for _ in next(iter(rows))]
        for labels, value in rows.items():
            for own, label in zip(weights, labels, strict=True):
                if label != OTHERS:
                    own[label] += weight(value)  # type: ignore[assignment]
        position = max(range(len(weights)), key=lambda index: len(weights[index]))
        ranked = sorted(weights[position], key=lambda label: (-weights[position][label], label))
        kept = frozenset(ranked[: len(ranked) // 2])
        merged: dict[Labels, T] = {}
        for labels, value in rows.items():
            if labels[position] not in kept:
                labels = (*labels[:position], OTHERS, *labels[position + 1 :])
            merged[labels] = merge(merged[labels], value) if labels in merged else value
        rows = merged
    return rows
