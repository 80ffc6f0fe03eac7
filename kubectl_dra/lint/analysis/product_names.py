"""Names of products, of which manifests have a part, or another spelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

_WORD: Final = re.compile(r"[^\s-]+")


@lru_cache(1024)
def alike(text: str, products: tuple[str, ...]) -> tuple[str, ...]:
    """Complete product names that contain the text or differ from it in spelling."""
    wanted = text.lower().replace("-", " ").replace("_", " ").removeprefix("nvidia ")
    if len(wanted) < 2:
        return ()
    # "h100" is a part of "nvidia h100 pcie", and "a100 80gb" of "nvidia a100 sxm4 80gb", word by word.
    words = wanted.split()
    names = []
    for product in products:
        parts = product.lower().replace("-", " ").split()
        if all(word in parts for word in words):
            names.append(product)
    return tuple(names)


def common_part(text: str, meant: Sequence[str]) -> str:
    """A word of the text, as all names that are meant spell it; empty if there is none."""
    words = text.lower().replace("-", " ").replace("_", " ").split()
    # A number of a model tells more than the vendor's name.
    for word in sorted(words, key=lambda word: not any(char.isdigit() for char in word)):
        spelled = next((part for part in _WORD.findall(meant[0]) if part.lower() == word), "")
        if spelled and all(spelled in name for name in meant):
            return spelled
    return ""
