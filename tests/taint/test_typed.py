"""What people type: devices, taints and times."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.errors import UsageError
from kubectl_dra.taint import times
from kubectl_dra.taint.typed import Removal, TaintSpec, read_words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400), ("0", 0), ("250ms", 0.25)],
)
def test_seconds(text: str, seconds: float) -> None:
    assert times.seconds(text, "--wait") == seconds


@pytest.mark.parametrize("text", ["", "h", "4 h", "-1s", "1w", "4hours", "٤h", "99999d", "1e9"])
def test_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError, match="--wait"):
        times.seconds(text, "--wait")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (3599, "59m"),
        (3600, "60m"),
        (5400, "90m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 2940, "7h49m"),
        (19 * 3600 + 2580, "19h"),
        (47 * 3600, "47h"),
        (200000, "2d7h"),
        (8 * 86400 + 3600, "8d"),
        (729 * 86400, "729d"),
        (730 * 86400, "2y"),
        (900 * 86400, "2y170d"),
        (3000 * 86400, "8y"),
    ],
)
def test_span(seconds: float, shown: str) -> None:
    assert times.span(seconds) == shown


def test_times_of_the_api() -> None:
    time = datetime(2026, 11, 21, 10, 0, 5, tzinfo=UTC)
    assert times.parse(times.stamp(time)) == time
    assert times.stamp(times.later(time, 3600)) == "2026-11-21T11:00:05Z"
    assert times.age("2026-11-21T09:00:05Z", time) == "60m"
    for text in ("", "yesterday", "2026-11-21T09:00:05"):
        assert times.parse(text) is None and times.age(text, time) == "unknown"


@pytest.mark.parametrize(
    ("words", "devices", "taints", "removals"),
    [
        (["gpu-0", "k:NoSchedule"], ("gpu-0",), (TaintSpec("k", "", "NoSchedule"),), ()),
        (["a/b/c", "d", "x.io/k=v:NoExecute"], ("a/b/c", "d"), (TaintSpec("x.io/k", "v", "NoExecute"),), ()),
        (["gpu-0", "k=:None"], ("gpu-0",), (TaintSpec("k", "", "None"),), ()),
        (["gpu-0", "k-"], ("gpu-0",), (), (Removal("k"),)),
        (["gpu-0", "x.io/k:NoExecute-", "gpu-0"], ("gpu-0",), (), (Removal("x.io/k", "NoExecute"),)),
        # kubectl names a taint to remove as it named it to add.
        (["gpu-0", "x.io/k=v:NoExecute-"], ("gpu-0",), (), (Removal("x.io/k", "NoExecute"),)),
        (
            ["k1:NoSchedule", "k2:NoExecute"],
            (),
            (TaintSpec("k1", "", "NoSchedule"), TaintSpec("k2", "", "NoExecute")),
            (),
        ),
        ([], (), (), ()),
    ],
)
def test_words(
    words: list[str], devices: tuple[str, ...], taints: tuple[TaintSpec, ...], removals: tuple[Removal, ...]
) -> None:
    assert read_words(words) == (devices, taints, removals)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("k=v", "no effect"),
        ("k:", "not an effect"),
        ("k:noexecute", "did you mean NoExecute"),
        ("k:Evict", "there are None, NoSchedule, NoExecute"),
        (":NoSchedule", "not a taint key"),
        ("a/b/c:NoSchedule", "not a taint key"),
        ("Upper.io/k:NoSchedule", "not a taint key"),
        ("-k:NoSchedule", "not a taint key"),
        ("k=a b:NoSchedule", "not a label value"),
        ("k=" + "v" * 64 + ":NoSchedule", "not a label value"),
        ("k=v-", "leave out the value"),
        ("k:Wrong-", "not an effect"),
        ("-", "not a taint key"),
    ],
)
def test_refused(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_words(["gpu-0", word])


@pytest.mark.parametrize("word", ["k:NoExecute", "k:NoExecute-", "k=v:NoExecute", "k=v:NoExecute-"])
def test_untaint_takes_a_taint_as_taint_does(word: str) -> None:
    assert read_words(["gpu-0", word], removing=True) == (("gpu-0",), (), (Removal("k", "NoExecute"),))


def test_one_key_once() -> None:
    with pytest.raises(UsageError, match="twice"):
        read_words(["k:NoSchedule", "k:NoExecute"])
    with pytest.raises(UsageError, match="added and removed"):
        read_words(["k:NoSchedule", "k-"])


@pytest.mark.parametrize(
    ("removal", "key", "effect", "covered"),
    [
        (Removal(), "k", "NoExecute", True),
        (Removal("k"), "k", "None", True),
        (Removal("k"), "other", "None", False),
        (Removal("k", "NoSchedule"), "k", "NoExecute", False),
        (Removal("k", "NoSchedule"), "k", "NoSchedule", True),
    ],
)
def test_what_a_removal_covers(removal: Removal, key: str, effect: str, covered: bool) -> None:
    assert removal.covers(key, effect) is covered


@given(
    st.from_regex(r"[a-z][a-z0-9]{0,9}(\.[a-z]{1,5}/[a-z]{1,9})?", fullmatch=True),
    st.sampled_from(["", "v", "A.b_c-d"]),
)
def test_written_and_read_again(key: str, value: str) -> None:
    spec = TaintSpec(key, value, "NoSchedule")
    assert read_words([str(spec)]).taints == (spec,)
    removal = Removal(key, "NoExecute")
    assert read_words([str(removal)]).removals == (removal,)
