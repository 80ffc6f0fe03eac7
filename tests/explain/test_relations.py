"""What a pod is to a claim: every part of the program gives the same answer, and it is the claim controller's."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kubectl_dra.allocation.features import Features
from kubectl_dra.allocation.state import allocated_state
from kubectl_dra.api.claims import Consumer, ResourceClaim
from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.claim_relation import ClaimRelation, relation_of
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Key, Snapshot
from kubectl_dra.explain.holders import ClaimHolder, HolderIndex, HolderState
from kubectl_dra.explain.overview import pending
from kubectl_dra.explain.pending_alike import waiting
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_pod
from kubectl_dra.explain.two_releases import compare, running
from kubectl_dra.report.phrases import written
from kubectl_dra.usage.claim_use import claim_uses

Json = dict[str, Any]
SINCE = "2026-03-01T10:00:00Z"


def claim(*entries: Json, name: str = "c", owner: Json | None = None, held: str = "gpu-0") -> ResourceClaim:
    """An allocated claim of namespace ml with these entries in ``reservedFor``."""
    results = [{"request": "gpu", "driver": "d", "pool": "n1", "device": held}]
    return ResourceClaim.from_json(
        {
            "metadata": {"name": name, "namespace": "ml", "ownerReferences": [owner] if owner else []},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
            "status": {"allocation": {"devices": {"results": results}}, "reservedFor": list(entries)},
        }
    )


def pod(phase: str = "Running", node: str = "n1", name: str = "p", **meta: Any) -> Pod:
    return Pod.from_json(
        {
            "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}", **meta},
            "spec": {"nodeName": node, "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]},
            "status": {"phase": phase},
        }
    )


def entry(name: str = "p", **more: str) -> Json:
    return {"resource": "pods", "name": name, "uid": f"uid-{name}", **more}


class Case(NamedTuple):
    """One claim with one entry, and what each part of the program has to say of it.

    ``ends``: the pods that end when the claim is given back; ``frees``: whether the pod's end gives it back.
    """

    entry: Json
    pod: Pod | None
    relation: ClaimRelation
    holder: HolderState
    state: str
    ends: bool = True
    frees: bool = True
    live: bool = True


CASES = {
    "of the same uid": Case(entry(), pod(), ClaimRelation.RUNNING, HolderState.RUNNING, "in-use"),
    "an entry without a uid": Case(entry(uid=""), pod(), ClaimRelation.RUNNING, HolderState.RUNNING, "in-use"),
    "a pod without a uid": Case(entry(), pod(uid=""), ClaimRelation.RUNNING, HolderState.RUNNING, "in-use"),
    "both without a uid": Case(entry(uid=""), pod(uid=""), ClaimRelation.RUNNING, HolderState.RUNNING, "in-use"),
    "of another uid": Case(
        entry(uid="earlier"), pod(), ClaimRelation.REPLACED, HolderState.ENDED, "ended", ends=False, frees=False
    ),
    "finished": Case(entry(), pod("Succeeded"), ClaimRelation.FINISHED, HolderState.ENDED, "ended"),
    "deleted, on a node": Case(
        entry(), pod(deletionTimestamp=SINCE), ClaimRelation.ENDING, HolderState.ENDING, "terminating"
    ),
    "deleted before it had a node": Case(
        entry(),
        pod("Pending", "", deletionTimestamp=SINCE, finalizers=["a/b"]),
        ClaimRelation.NEVER_RAN,
        HolderState.ENDED,
        "ended",
    ),
    "its node is lost": Case(entry(), pod("Unknown"), ClaimRelation.RUNNING, HolderState.RUNNING, "in-use"),
    "on a node, pending": Case(entry(), pod("Pending"), ClaimRelation.STARTING, HolderState.PENDING, "starting"),
    "on no node yet": Case(entry(), pod("Pending", ""), ClaimRelation.BINDING, HolderState.PENDING, "starting"),
    "a group of the pod's name": Case(
        entry(resource="podgroups", apiGroup="scheduling.k8s.io"),
        pod(),
        ClaimRelation.GROUP,
        HolderState.FOREIGN,
        "reserved",
        ends=False,
        frees=False,
    ),
    "something of the pod's name in another group": Case(
        entry(apiGroup="example.com"),
        pod(),
        ClaimRelation.FOREIGN,
        HolderState.FOREIGN,
        "reserved",
        ends=False,
        frees=False,
    ),
    "not in the cluster": Case(
        entry("q"), pod(), ClaimRelation.GONE, HolderState.ENDED, "ended", ends=False, frees=False
    ),
    "not in the file": Case(
        entry("q"), pod(), ClaimRelation.UNSEEN, HolderState.RUNNING, "reserved", ends=False, frees=False, live=False
    ),
}


def cluster(*claims: ResourceClaim, pods: tuple[Pod, ...] = (), live: bool = True) -> Snapshot:
    return Snapshot(
        claims={("ml", one.metadata.name): one for one in claims},
        pods={("ml", one.metadata.name): one for one in pods},
        release_source="server" if live else "file",
    )


def holder_of(held: ResourceClaim, here: Snapshot) -> ClaimHolder:
    return HolderIndex(allocated_state([held], Features.from_gates(frozenset())), Cluster(here)).holder(held)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_all_parts_agree(case: Case) -> None:
    held, pods = claim(case.entry), (case.pod,) if case.pod else ()
    here = cluster(held, pods=pods, live=case.live)
    (listed,) = held.reserved_for
    asked = here.pods.get(("ml", listed.name)) if listed.resource == "pods" else None
    assert relation_of(held, listed, asked, complete=case.live) is case.relation
    holder = holder_of(held, here)
    (use,) = claim_uses(here).items
    after = Cluster(here).freeing([held]).snapshot
    ended = here.pods.keys() - after.pods.keys()
    freed = Cluster(here).ending(pods).delta.freed
    assert all(one.allocation is None for one in after.claims.values())
    assert (holder.standing, use.state.value) == (case.holder, case.state)
    assert (bool(holder.pods), bool(ended), bool(freed)) == (case.ends, case.ends, case.frees)


def test_a_pod_that_ends_is_the_one_that_is_listed() -> None:
    """The entries of two pods without UIDs are not one pod: giving back the claim of one frees no other."""
    first, other = claim(entry("p", uid="")), claim(entry("q", uid=""), name="e", held="gpu-1")
    here = cluster(first, other, pods=tuple(pod(name=name, uid="") for name in ("p", "q")))
    after = Cluster(here).freeing([first])
    assert after.delta.freed == (first,) and list(after.snapshot.pods) == [("ml", "q")]


def test_the_pod_and_the_node_of_a_successor_are_not_those_of_a_claim() -> None:
    """A claim of an earlier pod shows neither the owner nor the node of the one that now has its name."""
    owner = {"kind": "StatefulSet", "name": "s", "uid": "s", "controller": True}
    here = cluster(claim(entry(uid="earlier")), pods=(pod(ownerReferences=[owner]),))
    (use,) = claim_uses(here).items
    assert (use.node, use.owner, use.pods) == ("", None, ("p",))
    assert written(use.waits_for) == "its reservation for pod p to be removed (an earlier pod of that name)"


@pytest.mark.parametrize("live", [True, False])
def test_a_claim_ends_with_the_last_of_its_consumers(live: bool) -> None:
    """One that is not seen may run: a claim of two is no more over for ``claims`` than for its holder."""
    here = cluster(claim(entry(), entry("q")), pods=(pod(deletionTimestamp=SINCE),), live=live)
    (use,) = claim_uses(here).items
    holder = holder_of(use.claim, here)
    wanted = (HolderState.ENDING, "terminating") if live else (HolderState.RUNNING, "reserved")
    assert (holder.standing, use.state.value) == wanted


@pytest.mark.parametrize(
    ("asked", "listed", "relation"),
    [
        (pod(), claim(entry()), ClaimRelation.RUNNING),
        (pod(), claim(entry("q")), ClaimRelation.NAMES),
        (pod("Failed"), claim(), ClaimRelation.NAMED),
        (pod(uid="later"), claim(entry()), ClaimRelation.NAMES),
        (pod(namespace="other"), claim(entry()), ClaimRelation.NONE),
        (pod(), claim(name="e"), ClaimRelation.NONE),
    ],
)
def test_of_a_pod(asked: Pod, listed: ResourceClaim, relation: ClaimRelation) -> None:
    assert relation_of(listed, asked) is relation


OWNERS: dict[str, tuple[Json | None, ClaimRelation]] = {
    "of the pod": ({"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}, ClaimRelation.NAMES),
    "of an earlier one": ({"kind": "Pod", "name": "p", "uid": "earlier", "controller": True}, ClaimRelation.NOT_OWNER),
    "not the controller": ({"kind": "Pod", "name": "p", "uid": "uid-p"}, ClaimRelation.NOT_OWNER),
    "of nobody": (None, ClaimRelation.NOT_OWNER),
    "of its group": ({"kind": "PodGroup", "name": "g", "uid": "g", "controller": True}, ClaimRelation.NAMES),
    "of another group": ({"kind": "PodGroup", "name": "h", "uid": "h", "controller": True}, ClaimRelation.NOT_OWNER),
}


@pytest.mark.parametrize(("owner", "relation"), OWNERS.values(), ids=OWNERS.keys())
def test_of_a_pod_with_a_claim_from_a_template(owner: Json | None, relation: ClaimRelation) -> None:
    asked = Pod.from_json(
        {
            "metadata": {"name": "p", "namespace": "ml", "uid": "uid-p"},
            "spec": {
                "schedulingGroup": {"podGroupName": "g"},
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
            },
            "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "c"}]},
        }
    )
    assert relation_of(claim(owner=owner), asked) is relation


def synced(here: Snapshot) -> Snapshot:
    """The cluster after the claim controller and the garbage collector have looked at every claim, told on their own.

    See syncClaim in pkg/controller/resourceclaim/controller.go: entries that it cannot judge stay.
    """
    left: dict[Key, ResourceClaim] = {}
    for key, one in here.claims.items():
        remaining: list[Consumer] = []
        for listed in one.reserved_for:
            found = here.pods.get(("ml", listed.name))
            done = found is not None and (
                found.phase in ("Succeeded", "Failed") or (found.metadata.deletion_timestamp and not found.node_name)
            )
            other = listed.api_group != "" or listed.resource != "pods"
            if other or (found is not None and found.metadata.uid == listed.uid and not done):
                remaining.append(listed)
        one = one.deallocated() if one.reserved_for and not remaining else replace(one, reserved_for=tuple(remaining))
        owner = one.metadata.controller()
        gone = owner is not None and here.pods.get(("ml", owner.name)) is None
        if not (gone and not remaining):
            left[key] = one
    return replace(here, claims=left)


NAMES = ("p", "q", "r")
PODS = st.builds(
    lambda name, phase, node, deleted: pod(phase, node, name, **({"deletionTimestamp": SINCE} if deleted else {})),
    st.sampled_from(NAMES),
    st.sampled_from(("Pending", "Running", "Unknown", "Succeeded", "Failed")),
    st.sampled_from(("n1", "")),
    st.booleans(),
)
ENTRIES = st.one_of(
    st.sampled_from(NAMES).map(entry),
    st.sampled_from(NAMES).map(lambda name: entry(name, uid="earlier")),
    st.just(entry("p", resource="podgroups", apiGroup="scheduling.k8s.io")),
)
OWNER = st.one_of(
    st.none(),
    st.sampled_from(NAMES).map(lambda name: {"kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}),
)


@given(st.lists(PODS, max_size=4), st.lists(st.tuples(st.lists(ENTRIES, max_size=3), OWNER), max_size=4), st.data())
def test_an_end_leaves_what_the_claim_controller_leaves(
    pods: list[Pod], claims: list[tuple[list[Json], Json | None]], data: st.DataObject
) -> None:
    """What is given back by the end of pods is what the controller clears after they are gone and not before.

    Pods that claims name and nobody made are left out: without all pods they may be anywhere.
    """
    known = {one.metadata.name: one for one in pods}
    made = [
        claim(*(one for one in entries if one["name"] in known or one["resource"] != "pods"), name=f"c{n}", owner=owner)
        for n, (entries, owner) in enumerate(claims)
        if owner is None or owner["name"] in known
    ]
    here = cluster(*made, pods=tuple(known.values()))
    ended = [one for one in known.values() if data.draw(st.booleans(), label=f"ends {one.metadata.name}")]
    given_back = Cluster(here).ending(ended)
    names = {one.metadata.name for one in ended}
    after = synced(replace(here, pods={key: one for key, one in here.pods.items() if key[1] not in names}))
    before = synced(here)

    def held(where: Snapshot) -> set[str]:
        return {one.metadata.name for one in where.claims.values() if one.allocation is not None}

    freed = {one.metadata.name for one in given_back.delta.freed}
    assert held(before) - held(after) <= freed <= {one.metadata.name for one in made} - held(after)
    left = given_back.snapshot.claims
    assert {name for _, name in left} >= {name for _, name in after.claims}
    assert all(left[key].allocation is None for key in left if key[1] in freed)


@pytest.mark.parametrize(("phase", "waits"), [("Pending", False), ("Succeeded", True)])
def test_a_pending_claim_that_only_an_ended_pod_names_has_no_pod(phase: str, waits: bool) -> None:
    """It is listed as one that waits by itself, and asked about when devices are tainted."""
    here = cluster(claim().deallocated(), pods=(pod(phase, ""),))
    settings = assumed(here)
    assert [type(one) for one in waiting(here, settings)] == [ResourceClaim if waits else Pod]
    assert claim_uses(here).items[0].state.value == ("no-pod" if waits else "pending")


@pytest.mark.parametrize(
    ("entries", "free"),
    [([entry()], True), ([entry(uid="")], True), ([entry(uid="earlier")], False), ([entry(), entry("q")], False)],
    ids=["its own", "without a uid", "of an earlier pod", "of two"],
)
def test_of_what_runs_an_upgrade_is_asked_with_the_claims_as_they_are_after_its_end(
    entries: list[Json], free: bool
) -> None:
    """What only the pod uses is allocated anew; to what others use the pod is added."""
    here = cluster(claim(*entries), pods=(pod(),))
    settings = assumed(here)
    assert compare(here, settings, settings).judged == 1
    (subject,) = running(here)
    (left,) = subject.snapshot.claims.values()
    assert (left.allocation is None) is free
    assert all(one.name != "p" or one.uid == "earlier" for one in left.reserved_for)


@pytest.mark.parametrize(("read_at", "normal"), [("2026-03-01T10:00:20Z", True), ("2026-03-01T10:00:40Z", False)])
def test_a_pod_that_ends_is_normal_for_some_seconds(read_at: str, normal: bool) -> None:
    """The finding says so, and ``explain -A`` lists the pod only afterwards."""
    ending = pod(deletionTimestamp=SINCE)
    here = replace(cluster(claim(entry()), pods=(ending,)), read_at=read_at)
    told = diagnose(about_pod(ending, here, exists=True), here, assumed(here))
    assert (told.findings[0].kind.code, told.findings[0].normal) == ("pod-being-deleted", normal)
    assert bool(pending(here, "", assumed(here)).found) is not normal
