"""The answer about sharing: the ways that were tried, and what they tell together."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.causes.claim_elsewhere import ELSEWHERE, ELSEWHERE_UNUSED
from kubectl_dra.explain.diagnosis import Finding
from kubectl_dra.explain.node_reasons import Untolerated
from kubectl_dra.explain.remedies.node_rules import RelaxNodeRule
from kubectl_dra.fit.result import WorkloadFit
from kubectl_dra.fit.sharing import IN_ONE_POD, SharingNeed, SharingWay, WrittenWay


class Spread(NamedTuple):
    """On how many ``devices`` the pods of a way are. ``claims`` is how many have them for these pods, ``others`` how
    many of the devices serve claims of others, too.
    """

    devices: int = 0
    claims: int = 0
    others: int = 0

    @property
    def shared(self) -> bool:
        """Whether any of the devices serves several claims."""
        return self.claims > self.devices or self.others > 0


class TriedWay(Struct, frozen=True):
    """A way, how many pods of how many get a node with it, and what linting says. No ``fit``: it was not tried.

    ``after``: they do so only once the pods of the workload that run have ended. ``spread``: on which devices they are.
    """

    written: WrittenWay
    fit: WorkloadFit | None = None
    findings: tuple[str, ...] = ()
    after: bool = False
    spread: Spread = Spread()

    @property
    def works(self) -> bool:
        """Whether all pods get a node and start, and nothing in the cluster shows that the driver refuses them."""
        return self.fit is not None and self.fit.verdict is Verdict.SCHEDULABLE and not self.refused

    @property
    def refused(self) -> tuple[SharingNeed, ...]:
        """The gates of the driver that are off here."""
        return tuple(need for need in self.written.needs if need.refused is not None or need.off_on)

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates of the driver without which it refuses the pods that get a node."""
        return tuple(need.name for need in self.written.needs if need.driver)

    @property
    def why(self) -> tuple[Finding, ...]:
        """What keeps the first pod that gets no node."""
        return self.fit.stop.diagnosis.findings if self.fit is not None and self.fit.stop is not None else ()

    @property
    def placed(self) -> int:
        """Number of pods that get a node where they start, or have it."""
        return self.fit.starting if self.fit is not None else 0


class Tolerating(NamedTuple):
    """What comes of the pods if they tolerate these taints of nodes."""

    taints: tuple[str, ...]
    answer: ShareAnswer


class Divided(NamedTuple):
    """Into how many shared ``claims`` pods have to be divided, because the node of one takes only ``most`` of them.

    ``enough``: there are devices on so many nodes.
    """

    claims: int
    most: int
    enough: bool


class ShareAnswer(Struct, frozen=True):
    """The ways for pods of a class, or for so many ``containers`` of one pod.

    ``missing_namespaces`` do not exist, so that no pod is created; the ways suppose them. ``devices``: so many are of
    the class. ``tolerating``: taints of nodes keep the pods from running, and this is what comes of pods that
    tolerate them. ``given``: the manifest as it was read, where somebody wrote one.
    """

    ways: tuple[TriedWay, ...]
    device_class: str
    containers: int = 0
    missing_namespaces: tuple[str, ...] = ()
    devices: int = 0
    tolerating: Tolerating | None = None
    given: str = ""

    @property
    def taint(self) -> str:
        """The taint of nodes that keeps the first pod off them, where the fix of the cause is to tolerate it; else
        empty.
        """
        for finding in (finding for way in self.working for finding in way.why[:1]):
            for offer in finding.remedy.offers if finding.remedy is not None else ():
                reason = offer.reason if isinstance(offer, RelaxNodeRule) else None
                if isinstance(reason, Untolerated) and not reason.is_condition:
                    return str(reason.taint)
        return ""

    @property
    def pods(self) -> int:
        """Number of pods that share."""
        return next((way.fit.pods for way in self.ways if way.fit is not None), 0)

    @property
    def working(self) -> tuple[TriedWay, ...]:
        """The ways in which pods can work: who only watches what others hold does none, unless that was asked for."""
        return tuple(way for way in self.ways if way.written.way is not SharingWay.ADMIN or not self.ways[1:])

    @property
    def works(self) -> frozenset[SharingWay]:
        """The ways with which all pods run."""
        return frozenset(way.written.way for way in self.ways if way.works)

    @property
    def divided(self) -> Divided | None:
        """What more shared claims than one would do; None where it is not the node of the claim that is full."""
        full = [way for way in self.ways if way.written.way in IN_ONE_POD and way.why and way.why[0].kind in _FULL]
        if self.works or self.containers or not any(way.placed for way in full):
            return None
        most = max(way.placed for way in full)
        claims = -(-self.pods // most)
        own_device = next(
            (way.fit for way in self.ways if way.written.way is SharingWay.EACH and way.fit is not None), None
        )
        nodes = {pod.node for pod in own_device.placed_pods} if own_device is not None else set()
        return Divided(claims, most, claims <= len(nodes))


_FULL: Final = (ELSEWHERE, ELSEWHERE_UNUSED)
"""The causes of a pod that does not fit where its claim is."""
