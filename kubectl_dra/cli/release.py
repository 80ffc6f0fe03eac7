"""``--kubernetes-version`` and ``--feature-gates``, and the same settings in the configuration file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_dra.api.releases import Release, Releases, known_gates, parse_release
from kubectl_dra.errors import UsageError
from kubectl_dra.text import nearest

_FLAG: Final = "--feature-gates"


def named_release(text: str, known: Releases, does: str, source: str) -> Release:
    """The release requested with ``source``, a flag or a key of a file; ``does`` is the command, for
    messages.

    Raises:
        UsageError: not a release, or an unknown one.
    """
    try:
        release = parse_release(text)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    if release not in known:
        raise UsageError(f"{source} {text}: {does} {known}")
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
