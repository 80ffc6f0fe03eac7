"""Semantic versions against what Kubernetes 1.36 answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.semver import Semver, SemverError

# In ascending order of precedence; equal ones share a line.
ORDER = [
    ["0.0.0-0"],
    ["0.0.0"],
    ["1.0.0-1"],
    ["1.0.0-2"],
    ["1.0.0-10"],
    ["1.0.0-alpha"],
    ["1.0.0-alpha.1", "1.0.0-alpha.1+build"],
    ["1.0.0-alpha.beta"],
    ["1.0.0-beta"],
    ["1.0.0-beta.2"],
    ["1.0.0-beta.11"],
    ["1.0.0-rc.1"],
    ["1.0.0", "1.0.0+a", "1.0.0+b.2"],
    ["1.9.0"],
    ["1.10.0"],
    ["18446744073709551615.0.0"],
]


def test_precedence() -> None:
    ranked = [(rank, text) for rank, texts in enumerate(ORDER) for text in texts]
    for left_rank, left in ranked:
        for right_rank, right in ranked:
            a, b = Semver.parse(left), Semver.parse(right)
            assert a.compare(b) == (left_rank > right_rank) - (left_rank < right_rank)
            assert (a == b, a < b, a >= b) == (
                left_rank == right_rank,
                left_rank < right_rank,
                left_rank >= right_rank,
            )
            if left_rank == right_rank:
                assert hash(a) == hash(b)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("1.x.3", 'Invalid character(s) found in minor number "x"'),
        ("1.2.3.4", 'Invalid character(s) found in patch number "3.4"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.03", 'Patch number must not contain leading zeroes "03"'),
        (".2.3", 'strconv.ParseUint: parsing "": invalid syntax'),
        (
            "18446744073709551616.0.0",
            'strconv.ParseUint: parsing "18446744073709551616": value out of range',
        ),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-a..b", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SemverError) as caught:
        Semver.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v1.2", "1.2.0"),
        ("1", "1.0.0"),
        ("01.02.03", "1.2.3"),
        ("v1.2.3-rc.1+b", "1.2.3-rc.1+b"),
        ("1.2.0-rc", "1.2.0-rc"),
        ("000.0.00", "0.0.0"),
    ],
)
def test_normalisation(text: str, version: str) -> None:
    assert str(Semver.parse_normalised(text)) == version


@pytest.mark.parametrize("text", ["vv1.2.3", " 1.2.3", "1.2-rc", "v", ""])
def test_what_normalisation_does_not_repair(text: str) -> None:
    with pytest.raises(SemverError):
        Semver.parse_normalised(text)


NUMBERS = st.integers(0, 2**64 - 1)
IDENTIFIERS = st.one_of(NUMBERS.map(str), st.from_regex(r"[0-9A-Za-z-]*[A-Za-z-][0-9A-Za-z-]*", fullmatch=True))
PARTS = st.lists(IDENTIFIERS, max_size=3)


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), PARTS, PARTS)
def test_the_text_reads_back(numbers: tuple[int, int, int], prerelease: list[str], build: list[str]) -> None:
    text = ".".join(map(str, numbers))
    text += ("-" + ".".join(prerelease) if prerelease else "") + ("+" + ".".join(build) if build else "")
    version = Semver.parse(text)
    assert str(version) == text
    assert (version.major, version.minor, version.patch) == numbers
    assert Semver.parse_normalised(text) == version
