"""What goes from a pod's spec takes along what it leaves empty, and nothing else."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Delete, changed
from kubectl_dra.migrate.device_plugins.labels import emptied

KEYS = st.sampled_from(["a", "b", "c"])
TREES: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 9) | st.just({}) | st.just([]),
    lambda inner: st.dictionaries(KEYS, inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=12,
)


def paths(value: Any, at: FieldPath = ()) -> list[FieldPath]:
    """The paths of all values below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, below in items for path in ((*at, key), *paths(below, (*at, key)))]


def without(value: Any, gone: set[FieldPath], at: FieldPath = ()) -> Any:
    """What is left, or None for what goes; written without deletions, to compare with."""
    if at in gone:
        return None
    if isinstance(value, dict):
        kept: Any = {
            key: left for key, below in value.items() if (left := without(below, gone, (*at, key))) is not None
        }
    elif isinstance(value, list):
        kept = [left for key, below in enumerate(value) if (left := without(below, gone, (*at, key))) is not None]
    else:
        return value
    return None if value and not kept and at else kept


def leaves(value: Any) -> list[FieldPath]:
    """Paths that no other of them leads through."""
    every = paths(value)
    return [path for path in every if not any(len(other) > len(path) and other[: len(path)] == path for other in every)]


@settings(max_examples=200)
@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=3), st.data())
def test_nothing_empty_is_left_behind(spec: dict[str, Any], data: st.DataObject) -> None:
    removed = data.draw(st.lists(st.sampled_from(leaves(spec)), unique=True)) if leaves(spec) else []
    changes = emptied(spec, removed)
    assert changed(spec, changes) == without(spec, set(removed))
    assert bool(changes) == bool(removed)


def test_as_few_deletions_as_possible() -> None:
    spec = {"a": {"b": {"c": 1, "d": 2}}, "e": [{"f": 1}, 2]}
    assert emptied(spec, [("a", "b", "c"), ("a", "b", "d")]) == (Delete(("a",)),)
    assert emptied(spec, [("a", "b", "c")]) == (Delete(("a", "b", "c")),)
    assert emptied(spec, [("e", 0, "f")]) == (Delete(("e", 0)),)
    assert emptied(spec, []) == ()
