"""``--kubernetes-version`` and ``--feature-gates``, and the same settings in the configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_dra.api.releases import NEWEST_MODELLED, Release, known_gates, parse_release
from kubectl_dra.errors import UsageError
from kubectl_dra.names import nearest

OLDEST_EXPLAINED: Final = Release(1, 34)
NEWEST_EXPLAINED: Final = NEWEST_MODELLED
"""The releases whose allocator is modelled; lint and migrate know older ones."""
_FLAG: Final = "--feature-gates"


def named_release(text: str, oldest: Release, newest: Release, does: str, source: str) -> Release:
    """The release requested with ``source``, a flag or a key of a file; ``does`` is the command, for
    messages.

    Raises:
        UsageError: not a release, or an unknown one.
    """
    try:
        release = parse_release(text)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    if not oldest <= Release(release.major, release.minor) <= newest:
        raise UsageError(f"{source} {text}: {does} {oldest} to {newest}")
    return release


def named_gates(texts: Iterable[str], source: str = _FLAG) -> Iterator[tuple[str, bool]]:
    """Maps each gate in texts such as ``A=true,B=false`` to whether it should be on.

    Raises:
        UsageError: a malformed text, or a gate that no release has.
    """
    for item in (part for text in texts for part in text.split(",") if part):
        gate, _, value = item.partition("=")
        if value not in ("true", "false"):
            raise UsageError(f'{source}: "{item}" is not of the form GATE=true or GATE=false')
        if gate not in known_gates():
            near = nearest(gate, known_gates())
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f'{source}: unknown gate "{gate}"{hint}')
        yield gate, value == "true"


def with_gates(defaults: Iterable[str], texts: Iterable[str], source: str = _FLAG) -> frozenset[str]:
    """The enabled gates: the defaults, changed by those that the texts name.

    Raises:
        UsageError: as ``named_gates``.
    """
    on = set(defaults)
    for gate, wanted in named_gates(texts, source):
        (on.add if wanted else on.discard)(gate)
    return frozenset(on)
