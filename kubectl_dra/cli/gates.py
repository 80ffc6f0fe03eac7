"""``--feature-gates`` and what the configuration file says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubectl_dra.api.versions import known_gates
from kubectl_dra.errors import UsageError
from kubectl_dra.names import nearest


def named_gates(texts: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each gate of texts such as ``A=true,B=false``, and whether it is to be on.

    Raises:
        UsageError: a text of another form, or a gate that no release has.
    """
    for item in (part for text in texts for part in text.split(",") if part):
        gate, _, value = item.partition("=")
        if value not in ("true", "false"):
            raise UsageError(f'--feature-gates: "{item}" is not of the form GATE=true or GATE=false')
        if gate not in known_gates():
            near = nearest(gate, known_gates())
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f'--feature-gates: unknown gate "{gate}"{hint}')
        yield gate, value == "true"
