"""Values by identity: an object that nobody else keeps must not hand its identity to another."""

from __future__ import annotations

from kubectl_dra.by_identity import ByIdentity


def test_an_object_lives_as_long_as_its_value() -> None:
    known = ByIdentity[list[int], int]()
    for number in range(1_000):
        known.put([number], number)
    known.put_all([[number] for number in range(1_000)], range(1_000))
    assert len(known.by_id) == 2_000
    assert all(known.get([number]) is None for number in range(1_000))


def test_a_value_is_made_once() -> None:
    known, item = ByIdentity[list[int], list[int]](), [1]
    assert known.of(item, list) is known.of(item, list)
    assert known.without([item, [1]]) == [[1]] and known.each([item]) == [known[item]] == [[1]]
