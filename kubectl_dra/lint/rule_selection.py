"""Which rules to run: codes, prefixes of codes, and names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from kubectl_dra.errors import UsageError
from kubectl_dra.lint.registry import RULES
from kubectl_dra.manifests.inputs import matches
from kubectl_dra.names import nearest


class Selection(Struct, frozen=True):
    """Selected and ignored codes, of which the more specific wins, and codes ignored in some files."""

    select: tuple[str, ...] = ("DRA",)
    ignore: tuple[str, ...] = ()
    per_file: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def has(self, code: str) -> bool:
        """Whether the rule is selected in any file."""
        return _longest(self.select, code) > _longest(self.ignore, code)

    def in_file(self, code: str, file: str) -> bool:
        """Whether the rule is selected in this file, given that ``has`` is true."""
        return not any(_longest(codes, code) >= 0 and matches(file, pattern) for pattern, codes in self.per_file)


@lru_cache(maxsize=1024)
def _longest(prefixes: tuple[str, ...], code: str) -> int:
    return max((len(prefix) for prefix in prefixes if code.startswith(prefix)), default=-1)


def codes(words: Sequence[str], source: str) -> tuple[str, ...]:
    """Codes or prefixes of codes for words such as ``DRA3``, ``DRA301,DRA302`` or a rule's name.

    Raises:
        UsageError: a word that matches no rule.
    """
    out: list[str] = []
    names = {rule.name: rule.code for rule in RULES}
    for word in (part.strip() for text in words for part in text.split(",")):
        if not word:
            continue
        code = names.get(word, word.upper())
        if code != "ALL" and not any(rule.code.startswith(code) for rule in RULES):
            near = nearest(word, [*names, *names.values()])
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f'{source}: there is no rule "{word}"{hint} (kubectl dra lint --rules lists them)')
        out.append("DRA" if code == "ALL" else code)
    return tuple(out)
