"""Whether a name is another one with a slip of the pen."""

from __future__ import annotations

from functools import lru_cache

from kubectl_dra.text import edit_distance, nearest


@lru_cache(maxsize=4096)
def meant(name: str, names: tuple[str, ...]) -> str:
    """The name that was probably meant by a misspelled one; empty if there is none."""
    bound = _bound(name)
    near = [other for other in names if abs(len(other) - len(name)) <= bound and is_slip(name, other)]
    return next(iter(nearest(name, near)), "")


def is_slip(name: str, other: str) -> bool:
    """Whether two names differ only by a slip: a letter or two, not another word."""

    if len(name) < 4 > len(other):
        # c is not a misspelling of j, nor cpu of gpu.
        return False
    first, second = name.partition(".")[0], other.partition(".")[0]
    if "." in name and first != second and len(first) == len(second) and sorted(first) != sorted(second):
        # cpu.example.com is not a misspelling of gpu.example.com.
        return False
    if any(char.isdigit() for char in name + other) and _digits(name) != _digits(other):
        return False
    return name != other and edit_distance(name, other, _bound(name)) is not None


def _bound(name: str) -> int:
    return 1 if len(name) < 8 else 2


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())
