"""No single node has enough devices for a request."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import ALL, MAX_RESULTS
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.phrase import ObjectName, Subject, say
from kubectl_dra.explain.remedies.proof import Proof

TOO_FEW = CauseKind(code="too-few-on-one-node", family=Family.DEVICES)


def counted_lower(blocked: Blocked, best: int) -> Remedy | None:
    """Request fewer devices, up to ``best``; None if that does not help (enough)."""
    lower = blocked.lower_count(best)
    if lower is None:
        return None
    change, proof = lower
    return Remedy(say("{what:capital}.", what=change.what), proof, offers=(change,))


def _too_few(blocked: Blocked) -> Iterator[Finding]:
    best = blocked.most_on_one_node
    remedy = counted_lower(blocked, best)
    apart = _in_shares(blocked) if best else None
    if apart is not None:
        text = "Write {count} requests of count 1: they may share a device, which one request takes once."
        remedy = Remedy(say(text, count=blocked.spec.count), apart)
    yield Finding(
        TOO_FEW,
        say(
            "{where} needs {count:device} on one node, and no eligible node has more than {best}",
            where=blocked.where,
            count=blocked.spec.count,
            best=best,
        ),
        tuple(
            Evidence(Subject("node", ObjectName("Node", name)), "devices of this kind", len(blocked.view.on_node(name)))
            for name in blocked.nodes[:MAX_EVIDENCE]
        ),
        remedy,
    )


def _in_shares(blocked: Blocked) -> Proof | None:
    """The proof that a request fits as several requests of count 1, if its devices can be shared."""
    if blocked.spec.allocation_mode == ALL or not 1 < blocked.spec.count <= MAX_RESULTS:
        return None
    if blocked.located.place.extended:
        # Nobody writes the requests of an extended resource.
        return None
    if not any(item.device.allow_multiple_allocations for item in blocked.funnel.usable):
        return None
    split = blocked.world.splitting(blocked.located.claim_index, blocked.located.request_index)
    return split.proof() if split is not None else None


FINDERS = (Finder(When.STAGE, _too_few, of="too-few"),)
