"""Semantic versions as used by device attributes of type `version` (Semantic Versioning 2.0.0).

Kubernetes parses them strictly, with 64-bit parts. The CEL function `semver(text, true)` accepts looser
spellings by normalising them first (`parse_normalised`).
"""

from __future__ import annotations

from functools import lru_cache, total_ordering
from typing import Final

from kubectl_dra.api.codec import quoted

_DIGITS = frozenset("0123456789")
_IDENTIFIER = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_MAX_UINT64 = 2**64 - 1


class SemverError(ValueError):
    """The text is not a semantic version."""


@total_ordering
class Semver:
    """One version. Equality, hash and order follow precedence: build metadata does not count.

    `precedence` is the sort key itself, for code that compares many versions.
    """

    __slots__ = ("build", "major", "minor", "patch", "precedence", "prerelease")

    def __init__(
        self,
        major: int,
        minor: int,
        patch: int,
        prerelease: tuple[int | str, ...] = (),
        build: tuple[str, ...] = (),
    ) -> None:
        self.major: Final = major
        self.minor: Final = minor
        self.patch: Final = patch
        self.prerelease: Final = prerelease
        self.build: Final = build
        # A release sorts after its pre-releases, a number before a word.
        self.precedence: Final[tuple[object, ...]] = (
            major,
            minor,
            patch,
            not prerelease,
            tuple((0, part, "") if isinstance(part, int) else (1, 0, part) for part in prerelease),
        )

    @staticmethod
    def parse(text: str) -> Semver:
        """Read a strict version such as `1.10.0-rc.1+build.5`; raises SemverError."""
        return _parse(text)

    @staticmethod
    def parse_normalised(text: str) -> Semver:
        """Read a version after dropping one leading `v` and leading zeros, and adding missing parts.

        `v1.2` is 1.2.0 and `01.2.3` is 1.2.3. Raises SemverError. This is what `semver(text, true)` does.
        """
        return _parse(_normalise(text))

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1 by precedence."""
        mine, theirs = self.precedence, other.precedence
        if mine == theirs:
            return 0
        return -1 if mine < theirs else 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Semver):
            return NotImplemented
        return self.precedence == other.precedence

    def __lt__(self, other: Semver) -> bool:
        return self.precedence < other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        if self.build:
            text += "+" + ".".join(self.build)
        return text

    def __repr__(self) -> str:
        return f"Semver({str(self)!r})"


@lru_cache(maxsize=8192)
def _parse(text: str) -> Semver:
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "major number", "Major number")
    minor = _number(parts[1], "minor number", "Minor number")
    rest, has_build, build_text = parts[2].partition("+")
    patch_text, has_prerelease, prerelease_text = rest.partition("-")
    patch = _number(patch_text, "patch number", "Patch number")
    prerelease = tuple(map(_prerelease_part, prerelease_text.split("."))) if has_prerelease else ()
    build = tuple(map(_build_part, build_text.split("."))) if has_build else ()
    return Semver(major, minor, patch, prerelease, build)


def _number(text: str, name: str, sentence_start: str) -> int:
    if not _DIGITS.issuperset(text):
        raise SemverError(f"Invalid character(s) found in {name} {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{sentence_start} must not contain leading zeroes {quoted(text)}")
    return _uint64(text)


def _uint64(digits: str) -> int:
    if not digits:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(digits) > 20 or (value := int(digits)) > _MAX_UINT64:
        raise SemverError(f"strconv.ParseUint: parsing {quoted(digits)}: value out of range")
    return value


def _prerelease_part(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return _uint64(text)
    if not _IDENTIFIER.issuperset(text):
        raise SemverError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _build_part(text: str) -> str:
    if not text:
        raise SemverError("Build meta data is empty")
    if not _IDENTIFIER.issuperset(text):
        raise SemverError(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _normalise(text: str) -> str:
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise SemverError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in _DIGITS else "0" + stripped
