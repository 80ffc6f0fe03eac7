"""What would let a pod onto a node that rejects it, said so that it can be done."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubectl_dra.explain.scene.node_eligibility import CORDONED, UNTOLERATED, is_condition, toleration_of
from kubectl_dra.wording import some

_INSUFFICIENT = re.compile(r"Insufficient (?P<name>\S+): needs \S+, (?P<left>\S+) of (?P<total>\S+) left")


def way_in(reason: str, nodes: Sequence[str]) -> str:
    """What to do, as a sentence without full stop: about the nodes that give this reason."""
    names = some(nodes)
    if is_condition(reason):
        return f"get {names} ready again ({reason.removeprefix(UNTOLERATED).strip()})"
    if reason.startswith(UNTOLERATED):
        return f"let the pod tolerate the node taint{reason.removeprefix(UNTOLERATED)}"
    if reason == CORDONED:
        return f"uncordon {names}"
    if reason.startswith(("Insufficient ", "Too many pods")):
        return f"make room on {names} ({reason})"
    return f"let the pod run on {names} ({reason})"


def fix(reason: str, nodes: Sequence[str]) -> str:
    """The same as a cause's fix; a toleration is written out."""
    if reason.startswith(UNTOLERATED) and not is_condition(reason):
        return f"Let the pod tolerate it: spec.tolerations: {toleration_of(reason)}"
    if reason == CORDONED and len(nodes) == 1:
        return f"When its maintenance is over: kubectl uncordon {nodes[0]}"
    short = _INSUFFICIENT.match(reason)
    if short is not None and not can_end(reason):
        return f"Lower what the pod requests of {short['name']}, or add nodes that have it."
    text = way_in(reason, nodes)
    return f"{text[0].upper()}{text[1:]}."


def said(reason: str, nodes: Sequence[str]) -> str:
    """The part that ``fix`` and ``way_in`` have in common."""
    if reason.startswith(UNTOLERATED) and not is_condition(reason):
        return toleration_of(reason)
    return f"uncordon {nodes[0]}" if reason == CORDONED else way_in(reason, nodes)[1:]


def can_end(reason: str) -> bool:
    """Whether the node could take the pod: not where the pod asks for more than the node has in all, or for
    something that it does not offer.
    """
    short = _INSUFFICIENT.match(reason)
    return short is None or (short["total"] != "0" and short["left"] != short["total"] and "/" not in short["name"])
