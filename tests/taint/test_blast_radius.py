from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kubectl_dra.allocation.attempt import Cycle
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cli.taint.session import TaintedCluster
from kubectl_dra.taint.blast_radius import ENDED, GOING, LATER, NOW, STAYS, UNKNOWN, Radius, blast_radius
from kubectl_dra.taint.device_taint_rules import MANAGED_BY, NEXT_AT, NEXT_EFFECT, OURS, DesiredRule, decide, rule_name
from kubectl_dra.taint.targets import RuleStep
from kubectl_dra.taint.typed import TaintSpec
from tests.taint.world import DRIVER, claim, device_class, gpu, node, pod, result, rule, slice_of, world

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
BASE = (node("n1"), device_class(), slice_of("n1", gpu("gpu-0"), gpu("gpu-1")))


def radius_of(here: TaintedCluster, *names: str, effect: str = "NoExecute") -> Radius:
    return radius_of_taints(here, names, [TaintSpec("k", "v", effect)])


def radius_of_taints(
    here: TaintedCluster, names: Sequence[str], taints: Sequence[TaintSpec], grace: float | None = None
) -> Radius:
    desired_rules = [
        (target, DesiredRule(target.id, taint, grace=grace)) for target in here.devices.named(names) for taint in taints
    ]
    there = {rule.metadata.name: rule for rule in here.snapshot.taint_rules}
    steps = [
        RuleStep(target, desired, decide(desired, there.get(desired.name), overwrite=True))
        for target, desired in desired_rules
    ]
    return blast_radius(steps, here.inventory.rows, here.snapshot, here.settings, AT)


def tolerating(**toleration: Any) -> dict[str, Any]:
    return {"tolerations": [{"key": "k", "operator": "Exists", **toleration}]}


@pytest.mark.parametrize(
    ("more", "fate", "at", "tolerates"),
    [
        ({}, NOW, "", False),
        (tolerating(effect="NoExecute"), STAYS, "", True),
        (tolerating(effect="NoExecute", tolerationSeconds=90), LATER, "2026-11-21T10:01:30Z", True),
        (tolerating(effect="NoExecute", tolerationSeconds=-5), NOW, "", True),
        # Without an effect it lets the pod be placed, not stay.
        (tolerating(), NOW, "", True),
        (tolerating(effect="NoSchedule"), NOW, "", False),
        ({"tolerations": [{"key": "k", "value": "w", "effect": "NoExecute"}]}, NOW, "", False),
        ({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, STAYS, "", True),
    ],
)
def test_fates(more: dict[str, Any], fate: str, at: str, tolerates: bool) -> None:
    here = world(*BASE, claim("c", result("gpu-0", **more), pods=("p",)), pod("p", "c"))
    (hit,) = radius_of(here, "gpu-0").claims
    (found,) = hit.pods
    assert (found.fate, found.at, found.tolerates) == (fate, at, tolerates)
    assert radius_of(here, "gpu-0", effect="NoSchedule").claims[0].pods[0].fate == STAYS
    assert not radius_of(here, "gpu-1").claims


def test_shortest_toleration_counts() -> None:
    entries = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": s} for s in (60, 30)]
    here = world(*BASE, claim("c", result("gpu-0", tolerations=entries), pods=("p",)), pod("p", "c"))
    assert radius_of(here, "gpu-0").claims[0].pods[0].at == "2026-11-21T10:00:30Z"


def test_old_releases_keep_no_tolerations() -> None:
    more = tolerating(effect="NoExecute")
    here = world(*BASE, claim("c", result("gpu-0", **more), pods=("p",)), pod("p", "c"), release="1.34.2")
    found = radius_of(here, "gpu-0")
    assert found.claims[0].pods[0].fate == NOW and "does not keep tolerations" in found.notes[0]


def test_pods_that_are_not_evicted() -> None:
    extended = claim("x", result("gpu-1"), pods=("ext",))
    extended["metadata"]["annotations"] = {"resource.kubernetes.io/extended-resource-claim": "true"}
    ended = pod("ended", "c")
    ended["status"]["phase"] = "Succeeded"
    here = world(*BASE, claim("c", result("gpu-0"), pods=("ended", "ghost")), ended, extended, pod("ext"))
    found = radius_of(here, "gpu-0", "gpu-1")
    fates = {pod.name: pod.fate for hit in found.claims for pod in hit.pods}
    assert fates == {"ended": "has ended", "ghost": UNKNOWN, "ext": STAYS}
    priorities = {pod.name: pod.priority for hit in found.claims for pod in hit.pods}
    assert priorities == {"ended": 0, "ghost": None, "ext": 0}
    assert found.deleted() == 0


def test_a_pod_of_another_uid_is_not_the_user() -> None:
    """The entry means the pod before it, which is gone: a name has one pod at a time."""
    here = world(*BASE, claim("c", result("gpu-0"), pods=("p",)), pod("p", uid="later"))
    (found,) = radius_of(here, "gpu-0").claims[0].pods
    assert (found.fate, found.why) == (ENDED, "an earlier pod of that name")


def test_pods_without_uids_are_counted_by_their_names() -> None:
    held = claim("c", result("gpu-0"), pods=("p", "q"))
    for entry in held["status"]["reservedFor"]:
        entry["uid"] = ""
    here = world(*BASE, held, pod("p", uid=""), pod("q", uid=""))
    found = radius_of(here, "gpu-0")
    assert found.deleted() == 2 and len(found.pods()) == 2


def test_a_pod_of_several_devices_is_counted_once() -> None:
    here = world(*BASE, claim("c", result("gpu-0"), result("gpu-1"), pods=("p",)), pod("p", "c"))
    found = radius_of(here, "gpu-0", "gpu-1")
    assert found.deleted() == 1 and len(found.claims) == 2 and len(found.pods()) == 1
    assert [found.deleted(target.id) for target in here.devices.named(["gpu-0", "gpu-1"])] == [1, 1]


def test_of_several_taints_the_worst_counts() -> None:
    soon = {"key": "soon", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
    late = {**soon, "key": "late", "tolerationSeconds": 300}
    here = world(*BASE, claim("c", result("gpu-0", tolerations=[soon, late]), pods=("p",)), pod("p", "c"))
    fates = {
        ("m:NoSchedule", "late:NoExecute", "soon:NoExecute"): (LATER, "2026-11-21T10:00:30Z"),
        ("late:NoExecute", "a:NoExecute"): (NOW, ""),
        ("m:NoSchedule", "n:None"): (STAYS, ""),
    }
    for texts, expected in fates.items():
        pairs = [text.split(":") for text in texts]
        for order in (pairs, pairs[::-1]):
            (hit,) = radius_of_taints(here, ["gpu-0"], [TaintSpec(key, "", effect) for key, effect in order]).claims
            (found,) = hit.pods
            assert (found.fate, found.at) == expected


def test_what_a_hit_says_of_a_pod() -> None:
    owner = {"kind": "Job", "name": "train", "uid": "u", "controller": True}
    raw = pod("p", "c", creationTimestamp="2026-11-21T09:00:00Z", ownerReferences=[owner])
    raw["spec"]["priority"] = 100
    here = world(*BASE, claim("c", result("gpu-0", adminAccess=True), pods=("p",)), raw)
    (hit,) = radius_of(here, "gpu-0").claims
    found = hit.pods[0]
    assert hit.admin_access
    assert (found.owner, found.created, found.priority, found.node) == ("Job/train", "2026-11-21T09:00:00Z", 100, "n1")


def test_the_owner_is_the_deployment_as_in_other_tables() -> None:
    owner = {"kind": "ReplicaSet", "name": "web-7c9d5b8f6", "uid": "u", "controller": True, "apiVersion": "apps/v1"}
    raw = pod("p", "c", ownerReferences=[owner], labels={"pod-template-hash": "7c9d5b8f6"})
    (hit,) = radius_of(world(*BASE, claim("c", result("gpu-0"), pods=("p",)), raw), "gpu-0").claims
    assert hit.pods[0].owner == "Deployment/web"


@pytest.mark.parametrize(
    ("names", "effect", "lost"),
    [
        (("gpu-0",), "NoSchedule", {"pair"}),
        (("gpu-0", "gpu-1"), "NoSchedule", {"one", "pair"}),
        (("gpu-0", "gpu-1"), "NoExecute", {"one", "pair"}),
        (("gpu-0", "gpu-1"), "None", set()),
    ],
)
def test_pending_claims_that_lose_their_match(names: tuple[str, ...], effect: str, lost: set[str]) -> None:
    tolerant: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
    here = world(
        *BASE, claim("one"), claim("pair", count=2), claim("three", count=3), claim("tolerant", count=2, **tolerant)
    )
    assert {entry.name for entry in radius_of(here, *names, effect=effect).lost} == lost


def test_pending_pods_are_named_instead_of_their_claims() -> None:
    here = world(*BASE, claim("c", count=2), pod("p", "c", node_name=""))
    (lost,) = radius_of(here, "gpu-0").lost
    assert (lost.kind, lost.namespace, lost.name, lost.all_mode) == ("pod", "team", "p", False)


def test_a_pending_pod_with_an_extended_resource_alone_loses_its_device() -> None:
    """It has no claim before it is placed: the scheduler makes one for it then."""
    served = device_class()
    served["spec"]["extendedResourceName"] = "example.com/gpu"
    waits = pod("p", node_name="")
    waits["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": "1"}}
    here = world(node("n1"), served, slice_of("n1", gpu("gpu-0")), waits)
    assert [(entry.kind, entry.name) for entry in radius_of(here, "gpu-0").lost] == [("pod", "p")]
    waits["metadata"]["deletionTimestamp"] = "2026-11-21T09:00:00Z"
    assert not radius_of(world(node("n1"), served, slice_of("n1", gpu("gpu-0")), waits), "gpu-0").lost


def test_nobody_is_said_to_lose_what_may_be_given_to_nobody() -> None:
    """Whether the scheduler gives out a device with a field that we do not know is open."""
    unknown: dict[str, Any] = {"fromTheFuture": True}
    alone = (node("n1"), device_class(), slice_of("n1", gpu("gpu-0", **unknown)))
    assert not radius_of(world(*alone, claim("one")), "gpu-0").lost
    other = (node("n1"), device_class(), slice_of("n1", gpu("gpu-0"), gpu("gpu-1", **unknown)))
    assert not radius_of(world(*other, claim("one")), "gpu-0").lost


def test_requests_for_all_devices() -> None:
    wants_all: dict[str, Any] = {"allocationMode": "All"}
    here = world(
        *BASE,
        device_class("none", "false"),
        claim("all", **wants_all),
        claim("tolerant", **wants_all, tolerations=[{"key": "k", "operator": "Exists"}]),
        claim("elsewhere", allocationMode="All", deviceClassName="none"),
        claim("one"),
    )
    found = radius_of(here, "gpu-0")
    assert [entry.name for entry in found.all_requests] == ["all"]
    assert [(entry.name, entry.all_mode) for entry in found.lost] == [("all", True)]


def test_what_is_left_of_each_class() -> None:
    here = world(*BASE, device_class("first", 'device.driver == "x"'), claim("c", result("gpu-1"), pods=("p",)))
    for names, after in ((("gpu-0",), 0), (("gpu-1",), 1)):
        (left,) = radius_of(here, *names).classes
        assert (left.name, left.devices, left.free, left.free_after) == ("gpu", 2, 1, after)


@pytest.mark.parametrize(("effect", "after"), [("NoExecute", 1), ("NoSchedule", 0)])
def test_what_a_deleted_pod_gives_back_counts(effect: str, after: int) -> None:
    """Its other devices are free when it is gone; a pod that stays keeps them."""
    here = world(*BASE, claim("c", result("gpu-0"), result("gpu-1"), pods=("p",)), pod("p", "c"))
    (left,) = radius_of(here, "gpu-0", effect=effect).classes
    assert (left.free, left.free_after) == (0, after)


def test_what_is_left_of_each_capacity() -> None:
    """Of devices that can be shared what is left counts as well as how many are free."""
    shared = [
        {**gpu(name), "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
        for name in ("gpu-0", "gpu-1")
    ]
    taken = {**result("gpu-1"), "shareID": "s", "consumedCapacity": {"memory": "10Gi"}}
    here = world(node("n1"), device_class(), slice_of("n1", *shared), claim("c", taken, pods=("p",)))
    for names, after in ((("gpu-0",), "30Gi"), (("gpu-1",), "40Gi"), (("gpu-0", "gpu-1"), "0")):
        (left,) = radius_of(here, *names).classes
        (capacity,) = left.capacities
        assert (left.free, [str(each) for each in capacity]) == (1, ["memory", "80Gi", "70Gi", after])


def test_the_pods_of_a_group_are_hit() -> None:
    grouped = claim("mine", result("gpu-0"), pods=("p",))
    grouped["status"]["reservedFor"] = [{"resource": "podgroups", "name": "gang", "uid": "g"}]
    members = [pod(name, "mine") for name in ("a", "b")]
    for member in members:
        member["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    radius = radius_of(world(*BASE, grouped, *members, pod("other", "")), "gpu-0")
    assert sorted(hit.name for hit in radius.pods().values()) == ["a", "b"] and radius.deleted() == 2
    (hit,) = radius_of(world(*BASE, grouped), "gpu-0").claims
    assert [(other.resource, other.name) for other in hit.others] == [("podgroups", "gang")] and not hit.pods


@pytest.mark.parametrize(("release", "lost"), [("1.36.2", 0), ("1.36.4", 1)])
def test_a_scheduler_that_does_not_see_rules_loses_nobody(release: str, lost: int) -> None:
    taken = claim("mine", result("gpu-1"), pods=("p",))
    here = world(*BASE, taken, pod("p", "mine"), claim("waiting"), release=release)
    assert len(radius_of(here, "gpu-0", effect="NoSchedule").lost) == lost


def test_a_claim_that_fits_on_another_node_loses_nothing() -> None:
    here = world(*BASE, node("n2"), slice_of("n2", gpu("gpu-0")), claim("one"), claim("pair", count=2))
    assert {entry.name for entry in radius_of(here, "n1/gpu-0").lost} == {"pair"}
    assert {entry.name for entry in radius_of(here, "n1/gpu-0", "n1/gpu-1").lost} == {"pair"}
    assert {entry.name for entry in radius_of(here, "n1/gpu-0", "n1/gpu-1", "n2/gpu-0").lost} == {"one", "pair"}


def test_only_nodes_and_claims_that_matter_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one device means is found without trying every pending claim on every node."""
    nodes = [raw for number in range(40) for raw in (node(f"n{number}"), slice_of(f"n{number}", gpu("gpu-0")))]
    never = [claim(f"never-{number}", count=2 + number) for number in range(5)]
    other = [claim(f"other-{number}", deviceClassName="none") for number in range(5)]
    here = world(device_class(), device_class("none", "false"), *nodes, claim("one"), *never, *other)
    tried: list[str] = []
    original = Cycle.attempt

    def attempt(self: Cycle, node: Any, *arguments: Any, **more: Any) -> Any:
        tried.append(node.name)
        return original(self, node, *arguments, **more)

    monkeypatch.setattr(Cycle, "attempt", attempt)
    assert not radius_of(here, "n7/gpu-0").lost
    # "one" fits on n7, and on other nodes, which are like it; five ask for several devices of n7 in vain; the others
    # cannot get it.
    assert tried == ["n7"] * 6


def test_pods_of_one_workload_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer for one of them holds for all, and only for them: not for claims that are shared or ask for more."""
    claims = [claim(f"c-{number}") for number in range(30)]
    pods = [pod(f"p-{number}", f"c-{number}", node_name="") for number in range(30)]
    two = pod("two", "c-30", node_name="")
    two["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "c-31"})
    same = pod("same", "c-32", node_name="")
    same["spec"]["resourceClaims"].append({"name": "more", "resourceClaimName": "c-32"})
    extra = [claim(f"c-{number}") for number in (30, 31, 32)]
    here = world(*BASE, *claims, *pods, *extra, two, same)
    tried: list[str] = []
    original = Cycle.attempt

    def attempt(self: Cycle, node: Any, *arguments: Any, **more: Any) -> Any:
        tried.append(node.name)
        return original(self, node, *arguments, **more)

    monkeypatch.setattr(Cycle, "attempt", attempt)
    lost = [entry.name for entry in radius_of(here, "gpu-0").lost]
    # One device is left: who needs two is lost. A claim that is listed twice can never be placed.
    assert lost == ["two"] and len(tried) <= 9
    tried.clear()
    assert len(radius_of(here, "gpu-0", "gpu-1").lost) == 31 and len(tried) <= 6


def test_a_drain_deletes_only_what_still_runs_at_its_end() -> None:
    soon = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 90}
    here = world(
        *BASE,
        claim("c", result("gpu-0"), pods=("p",)),
        claim("d", result("gpu-1", tolerations=[soon]), pods=("q",)),
        claim("look", result("gpu-0", adminAccess=True), pods=("monitor",)),
        *(pod("p", "c"), pod("q", "d"), pod("monitor", "look")),
    )
    found = radius_of_taints(here, ["gpu-0", "gpu-1"], [TaintSpec("k", "v", "NoExecute")], grace=3600)
    hits = {pod.name: (pod.fate, pod.at, pod.drained) for pod in found.pods().values()}
    assert hits == {
        "p": (LATER, "2026-11-21T11:00:00Z", True),
        "q": (LATER, "2026-11-21T11:01:30Z", True),
        "monitor": (LATER, "2026-11-21T11:00:00Z", True),
    }
    # A drain of devices that nobody holds is over at once.
    alone = world(*BASE, claim("look", result("gpu-0", adminAccess=True), pods=("monitor",)), pod("monitor", "look"))
    (only,) = radius_of_taints(alone, ["gpu-0"], [TaintSpec("k", "v", "NoExecute")], grace=3600).pods().values()
    assert (only.fate, only.at, only.drained) == (NOW, "", False)


@pytest.mark.parametrize(
    ("effect", "notes", "fate", "at", "drained"),
    [
        # It goes on to where it was going.
        (
            "NoSchedule",
            {NEXT_EFFECT: "NoExecute", NEXT_AT: "2026-11-21T10:20:00Z"},
            LATER,
            "2026-11-21T10:20:00Z",
            True,
        ),
        ("NoSchedule", {NEXT_EFFECT: "NoExecute", NEXT_AT: "2026-11-21T09:59:00Z"}, NOW, "", False),
        # The server counts tolerationSeconds from when the effect was added.
        ("NoExecute", {}, LATER, "2026-11-21T10:00:30Z", False),
    ],
)
def test_a_rule_that_is_there_keeps_its_time(
    effect: str, notes: dict[str, str], fate: str, at: str, drained: bool
) -> None:
    tolerated = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 90}
    more: dict[str, Any] = {"tolerations": [tolerated]} if effect == "NoExecute" else {}
    device = {"driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    name = rule_name(DeviceID(DRIVER, "n1", "gpu-0"), "k")
    there = rule(name, device, effect, labels={MANAGED_BY: OURS}, annotations=notes)
    there["spec"]["taint"]["timeAdded"] = "2026-11-21T09:59:00Z"
    here = world(*BASE, claim("c", result("gpu-0", **more), pods=("p",)), pod("p", "c"), there)
    (hit,) = radius_of_taints(here, ["gpu-0"], [TaintSpec("k", "", "NoExecute")], grace=3600).pods().values()
    assert (hit.fate, hit.at, hit.drained) == (fate, at, drained)


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize("grace", [None, 60.0])
def test_a_pod_that_is_being_deleted_already_is_not_ours(effect: str, grace: float | None) -> None:
    """The eviction controller does not count it either."""
    going = pod("p", "c", deletionTimestamp="2026-11-21T10:00:00Z", deletionGracePeriodSeconds=30)
    here = world(*BASE, claim("c", result("gpu-0"), pods=("p",)), going)
    found = radius_of_taints(here, ["gpu-0"], [TaintSpec("k", "v", effect)], grace)
    assert [hit.fate for hit in found.pods().values()] == [GOING] and found.deleted() == 0


def _owned(name: str, claims: list[dict[str, str]], **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "train", "uid": "s", "controller": True}
    made = pod(name, ownerReferences=[owner])
    made["spec"] |= {"resourceClaims": claims, **spec}
    return made


@pytest.mark.parametrize(
    ("names", "pending", "fits"),
    [
        (("gpu-0",), (), True),
        (("gpu-0", "gpu-1"), (), False),
        # Who waits already comes first.
        (("gpu-0",), (pod("first", "wanted", node_name=""), claim("wanted")), False),
    ],
)
def test_what_is_made_in_place_of_a_deleted_pod(names: tuple[str, ...], pending: Any, fits: bool) -> None:
    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "team"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}},
    }
    own = claim("train-0-gpu", result("gpu-0"), pods=("train-0",))
    own["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "uid-train-0", "controller": True}
    ]
    train = _owned("train-0", [entry])
    train["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "train-0-gpu"}]
    found = radius_of(world(*BASE, template, own, train, *pending), *names)
    assert [(replacement.key, replacement.made, replacement.fits) for replacement in found.replacements] == [
        ("team/train-0", True, fits)
    ]
    assert radius_of(world(*BASE, template, own, train, *pending), *names, effect="NoSchedule").replacements == ()
    # Without the template nobody knows what its new claim asks for, and nobody makes a pod without an owner again.
    assert [replacement.fits for replacement in radius_of(world(*BASE, own, train), "gpu-0").replacements] == [None]
    alone = radius_of(world(*BASE, claim("c", result("gpu-0"), pods=("p",)), pod("p", "c")), "gpu-0")
    assert [(replacement.made, replacement.fits) for replacement in alone.replacements] == [(False, None)]
