"""Why a driver refuses to prepare what a pod has, where that is known beside its own error; and what ends that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubectl_dra.api.claims import ResourceClaim
from kubectl_dra.api.pods import Pod, owner_of
from kubectl_dra.cluster.claim_relation import claims_of
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import deleting
from kubectl_dra.data.messages import understood
from kubectl_dra.drivers.health import DriverState, NodeDriver
from kubectl_dra.drivers.refused_claims import PartOfNode, Refusal, gate_named, refusals
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.driver_words import advice
from kubectl_dra.explain.phrase import named, say
from kubectl_dra.explain.refusal_words import mending, without_gate


def refusal(pod: Pod, claims: Sequence[ResourceClaim], drivers: Sequence[str], snapshot: Snapshot) -> Refusal | None:
    """The first reason why one of these drivers refuses what a pod's claims have on its node; None if none is known."""
    reasons = refusals(claims, pod.node_name, snapshot, snapshot.slices, pod)
    return next((reason for reason in reasons if reason.driver in drivers), None)


def remedy_of(pod: Pod, claims: Sequence[ResourceClaim], drivers: Sequence[str], snapshot: Snapshot) -> Remedy | None:
    """What ends a refusal, if its reason is known; the devices of a pod that nobody creates again end with it."""
    reason = refusal(pod, claims, drivers, snapshot)
    return _mending(reason, pod) if reason is not None else None


def _mending(reason: Refusal, pod: Pod) -> Remedy:
    alone = isinstance(reason, PartOfNode) and owner_of(pod) is None
    ends = (deleting("pod", pod.metadata.name, pod.metadata.namespace),) if alone else ()
    return Remedy(mending(reason, named("Pod", pod)), commands=ends, in_claim=True)


def mendings(rows: Iterable[NodeDriver], snapshot: Snapshot) -> Mapping[str, Remedy]:
    """By driver: what ends its failure to prepare the devices of a pod on a node, where the reason is known."""
    return dict(_mendings(rows, snapshot))


def _mendings(rows: Iterable[NodeDriver], snapshot: Snapshot) -> Iterator[tuple[str, Remedy]]:
    for row in rows:
        call = row.failing
        pod = snapshot.pods.get((call.namespace, call.pod)) if call is not None else None
        if pod is None or call is None or row.state is not DriverState.PREPARE_FAILING:
            continue
        if reason := refusal(pod, claims_of(pod, snapshot), (row.driver,), snapshot):
            yield row.driver, _mending(reason, pod)
        elif gate := gate_named(call.said, (row.driver,)):
            yield row.driver, Remedy(without_gate(gate), in_claim=True)
        elif (known := understood(call.said, (row.driver,))) is not None and row.driver in known.entry.says:
            yield row.driver, Remedy(say("{means} {advice}", means=known.means, advice=advice(known)))
