"""Names of products, of which people write a part, or another spelling."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_OTHER_NAMES: Final = {"v5e": ("v5", "lite")}
"""Words by which people know a product, with those that its driver has in their place."""


@lru_cache(1024)
def alike(text: str, products: tuple[str, ...]) -> tuple[str, ...]:
    """Complete product names that contain the text or differ from it in spelling."""
    wanted = _words(text)
    if len(" ".join(wanted)) < 2:
        return ()
    # "h100" is a part of "nvidia h100 pcie", and "a100 80gb" of "nvidia a100 sxm4 80gb", word by word.
    return tuple(product for product in products if set(wanted) <= set(_plain(product)))


def meant(text: str, products: tuple[str, ...]) -> tuple[str, ...]:
    """The products that a text may mean: the one of exactly this name, else those that contain its words.

    A part without a number, such as a vendor's name, means none.
    """
    whole = "".join(_words(text))
    exact = tuple(name for name in products if "".join(_words(name)) == whole)
    return exact or (alike(text, products) if re.search("[0-9]", text) else ())


def _words(text: str) -> list[str]:
    """The words of a name without the vendor's."""
    words = _plain(text)
    return words[1:] if words[:1] == ["nvidia"] and len(words) > 1 else words


def _plain(text: str) -> list[str]:
    words = text.lower().replace("-", " ").replace("_", " ").split()
    return [part for word in words for part in _OTHER_NAMES.get(word, (word,))]
