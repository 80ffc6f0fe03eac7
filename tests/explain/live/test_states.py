"""Several nodes, pools, pods and claims: what is taken already, and what is where."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kubectl_dra.api.releases import GROUP, versions_of
from tools.controlplane.client import Json
from tools.controlplane.cluster import wait
from tools.controlplane.objects import RESOURCE_API, device, request, resource_object
from tools.controlplane.plane import gates_of, release_of
from tools.live.referee import Referee, given
from tools.live.releases import LOOSE_POOLS, PARTITIONS, SHARES, Changed, expected, needs, needs_effect_none
from tools.live.tables import CARD, HALVES, MODELS, NUMA, PLAIN, shared, taint

# Devices that others hold


def test_next_device_after_one_is_held(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish(PLAIN[:2], pool="pool", node=cluster.node())
    template = cluster.template([request(gpu)])
    assert referee.fits("one", templates={"gpu": template}).devices("gpu") == ["pool/gpu-0"]
    assert referee.fits("two", templates={"gpu": template}).devices("gpu") == ["pool/gpu-1"]


def test_fleet_held_then_one_freed(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    for part in ("a", "b"):
        node = cluster.node(part)
        cluster.publish([device("gpu-0")], pool=node, node=node)
    template = cluster.template([request(gpu)])
    for name in ("one", "two"):
        cluster.scheduled(cluster.pod(name, templates={"gpu": template}))
    answer = referee.rejected("devices-held", "three", templates={"gpu": template})
    cause = answer.report["causes"][0]
    holders = " ".join(evidence["what"] for evidence in cause["evidence"])
    assert "one" in holders
    assert "two" in holders
    freed = "one" if "one" in cause["fix"]["text"] else "two"

    cluster.api.delete(cluster.get("Pod", freed, "v1"), grace_seconds=0)

    referee.proved(answer, cluster.scheduled("three"))


def test_all_with_one_held(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish(PLAIN, pool="pool", node=cluster.node())
    cluster.scheduled(cluster.pod("one", claims={"gpu": cluster.claim([request(gpu)], "held")}))
    claim = cluster.claim([request(gpu, allocationMode="All")])
    answer = referee.rejected("all-not-possible", claims={"gpu": claim})
    assert any("gpu-0" in evidence["value"] for evidence in answer.report["causes"][0]["evidence"])


def test_orphaned_allocation(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    # As a scheduler leaves it that ends between its steps: protected and allocated, and nobody uses it. Without the
    # finalizer the claim would be gone at once, which wakes no pod: only an update that gives devices back does.
    orphan = resource_object("ResourceClaim", cluster.claim([request(gpu)], "orphan"))
    orphan["metadata"]["namespace"] = cluster.namespace
    result = {"request": "gpu", "driver": cluster.driver, "pool": "pool", "device": "gpu-0"}
    cluster.api.patch(orphan, {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    cluster.api.patch(orphan, {"status": {"allocation": {"devices": {"results": [result]}}}}, "status")

    answer = referee.rejected("allocation-orphaned", claims={"gpu": cluster.claim([request(gpu)])})
    assert f"Delete unused claim {cluster.namespace}/orphan" in answer.report["causes"][0]["fix"]["text"]
    alone = referee.explain("claim/orphan")
    assert (alone.code, alone.report["verdict"], alone.causes) == (1, "allocated", ["allocation-orphaned"])

    cluster.api.delete(orphan)

    referee.proved(answer, cluster.scheduled("pod", 30))


def test_holder_that_does_not_end(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.scheduled(cluster.pod("one", claims={"gpu": cluster.claim([request(gpu)], "held")}))
    cluster.api.delete(cluster.get("Pod", "one", "v1"))
    referee.rejected("holder-stuck", claims={"gpu": cluster.claim([request(gpu)])})
    for name, code in (("pod/one", "pod-being-deleted"), ("claim/held", "holder-stuck")):
        found = referee.explain(name)
        assert (found.code, found.report["verdict"], found.causes) == (1, "allocated", [code])


def test_devices_of_a_pod_that_ends_come_back_by_themselves(referee: Referee) -> None:
    """Nobody has to delete the pod: kube-controller-manager takes the claim's allocation back."""
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.scheduled(cluster.pod("one", claims={"gpu": cluster.claim([request(gpu)], "held")}))
    referee.rejected("devices-held", "two", claims={"gpu": cluster.claim([request(gpu)])})

    cluster.api.patch(cluster.get("Pod", "one", "v1"), {"status": {"phase": "Succeeded"}}, "status")

    cluster.scheduled("two", 30)
    found = referee.explain("pod/one")
    assert (found.code, found.causes) == (1, ["pod-finished"])
    assert found.report["causes"][0]["fix"]["text"].startswith("Nothing needs to be done")


def test_partition_blocks_the_whole_card(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, PARTITIONS)
    gpu = cluster.device_class()
    cluster.publish(HALVES, pool=cluster.name("pool"), node=cluster.node(), shared_counters=CARD)
    memory = f'device.capacity["{cluster.driver}"].memory.compareTo(quantity("%s")) == 0'
    half = cluster.template([request(gpu, selectors=[memory % "40Gi"])], "half")
    whole = cluster.claim([request(gpu, selectors=[memory % "80Gi"])], "whole")
    for name in ("one", "two"):
        referee.fits(name, templates={"gpu": half})
    referee.rejected("counters-exhausted", "three", claims={"gpu": whole})
    for name in ("one", "two"):
        cluster.api.delete(cluster.get("Pod", name, "v1"), grace_seconds=0)
    assert [result["device"] for result in cluster.scheduled("three").results("gpu")] == ["whole"]
    after = referee.explain("pod/three")
    assert (after.code, after.report["verdict"]) == (0, "allocated")


def test_shares_until_the_device_is_full(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, SHARES)
    gpu = cluster.device_class()
    # Every share is rounded up to 3Gi, then 4Gi: 3Gi + 3Gi + 4Gi fill the device.
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    cluster.publish([shared("gpu-0", "10Gi", **policy)], pool="pool", node=cluster.node())
    for name, amount, taken in (("one", "2.5Gi", "3Gi"), ("two", "3Gi", "3Gi"), ("three", "3.5Gi", "4Gi")):
        claim = cluster.claim([request(gpu, capacity={"requests": {"memory": amount}})], name)
        result = referee.fits(name, claims={"gpu": claim}).results("gpu")[0]
        assert result["consumedCapacity"] == {"memory": taken}
    claim = cluster.claim([request(gpu)], "four")
    referee.rejected("capacity-insufficient", "four", claims={"gpu": claim})


def test_admin_access_to_a_device_in_use(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.allow_admin_access()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.scheduled(cluster.pod("one", claims={"gpu": cluster.claim([request(gpu)], "user")}))
    admin = cluster.claim([request(gpu, adminAccess=True, allocationMode="All")], "admin")
    scheduled = referee.fits("two", claims={"gpu": admin})
    assert scheduled.results("gpu")[0]["adminAccess"] is True


def test_claim_of_two_pods(referee: Referee) -> None:
    cluster = referee.cluster
    here, there = cluster.node("here"), cluster.node("there")
    gpu = cluster.device_class()
    for node in (here, there):
        cluster.publish([device("gpu-0")], pool=node, node=node)
    claim = cluster.claim([request(gpu)])
    on_here = {"kubernetes.io/hostname": here}
    first = referee.fits("one", claims={"gpu": claim}, nodeSelector=on_here)

    # A second consumer anywhere follows to the claim's node.
    cluster.pod("two", claims={"gpu": claim}, schedulingGates=[{"name": "example.com/wait"}])
    answer = referee.explain("pod/two")
    assert answer.causes == ["scheduling-gated"]
    assert answer.outcomes(here) == {"allocated": 1}
    assert answer.outcomes(there) == {"rejected": 1}
    _ungate(referee, "two")
    assert given(cluster.scheduled("two")) == given(first)

    # Pinned to another node it waits for ever.
    cluster.pod("three", claims={"gpu": claim}, nodeSelector={"kubernetes.io/hostname": there})
    message = cluster.unschedulable("three")
    assert "1 resourceclaim not available on the node" in message
    answer = referee.explain("pod/three")
    assert (answer.code, answer.causes) == (1, ["claim-allocated-elsewhere"])
    assert answer.outcomes(cluster.name("")) == {"rejected": 1}
    says_so = Changed(True, False, ("1.37",)).on(release_of(cluster.plane))
    assert ("still not schedulable" in message) is says_so


# Where devices are


def test_two_claims_fit_together_on_one_node_only(referee: Referee) -> None:
    cluster = referee.cluster
    gpu, nic = cluster.device_class("gpu"), cluster.device_class("nic")
    nodes = [cluster.node(part) for part in "abc"]
    for node, count in zip(nodes, (1, 2, 1), strict=True):
        cluster.publish(PLAIN[:count], pool=node, node=node)
    claims = {name: cluster.claim([request(kind)], name) for name, kind in (("gpu", gpu), ("nic", nic))}
    scheduled = referee.fits(claims=claims)
    assert scheduled.node == nodes[1]
    assert (scheduled.devices("gpu"), scheduled.devices("nic")) == ([f"{nodes[1]}/gpu-0"], [f"{nodes[1]}/gpu-1"])


def test_two_claims_that_want_the_same_device(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    for part in "ab":
        node = cluster.node(part)
        cluster.publish([device("gpu-0")], pool=node, node=node)
    claims = {name: cluster.claim([request(gpu)], name) for name in ("one", "two")}
    referee.rejected("requests-compete", claims=claims)


def test_two_claims_whose_devices_are_on_different_nodes(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    for part, model in (("a", "fast"), ("b", "slow")):
        node = cluster.node(part)
        cluster.publish([device("gpu-0", {"model": model})], pool=node, node=node)
    model = f'device.attributes["{cluster.driver}"].model'
    claims = {
        name: cluster.claim([request(gpu, selectors=[f'{model} == "{name}"'])], name) for name in ("fast", "slow")
    }
    referee.rejected("claims-need-different-nodes", claims=claims)


def test_node_of_each_device(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, PARTITIONS)
    one, two = cluster.node("one"), cluster.node("two", labels={"zone": "z"})
    gpu = cluster.device_class()
    zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]}
    devices = [device("gpu-0", nodeName=one), device("gpu-1", nodeSelector=zone), device("gpu-2", allNodes=True)]
    cluster.publish(devices, pool=cluster.name("pool"), perDeviceNodeSelection=True)
    claim = cluster.claim([request(gpu, allocationMode="All")])
    scheduled = referee.fits(claims={"gpu": claim}, nodeSelector={"kubernetes.io/hostname": two})
    assert [result["device"] for result in scheduled.results("gpu")] == ["gpu-1", "gpu-2"]


def test_pool_of_labelled_nodes(referee: Referee) -> None:
    cluster = referee.cluster
    cluster.node("plain")
    labelled = cluster.node("labelled", labels={"fabric": cluster.name("x")})
    gpu = cluster.device_class()
    term = {"matchExpressions": [{"key": "fabric", "operator": "In", "values": [cluster.name("x")]}]}
    cluster.publish(PLAIN[:1], pool=cluster.name("pool"), nodeSelector={"nodeSelectorTerms": [term]})
    assert referee.fits("one", claims={"gpu": cluster.claim([request(gpu)], "one")}).node == labelled
    referee.rejected("devices-held", "two", claims={"gpu": cluster.claim([request(gpu)], "two")})


def test_network_devices_of_all_nodes(referee: Referee) -> None:
    cluster = referee.cluster
    for part in "ab":
        cluster.node(part)
    gpu = cluster.device_class()
    cluster.publish(PLAIN[:1], pool=cluster.name("pool"))
    referee.fits(claims={"gpu": cluster.claim([request(gpu)])})


def test_pools_in_their_order(referee: Referee) -> None:
    cluster = referee.cluster
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish([device("a-local")], pool=cluster.name("a"), node=node)
    cluster.publish([device("z-network")], pool=cluster.name("z"))
    cluster.publish([device("m-local")], pool=cluster.name("m"), node=node)
    scheduled = referee.fits(claims={"gpu": cluster.claim([request(gpu, count=3)])})
    got = [result["device"] for result in scheduled.results("gpu")]
    assert (sorted(got) if referee.any_order else got) == ["a-local", "m-local", "z-network"]


def test_best_alternative_decides_about_the_node(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    one, two = cluster.node("one"), cluster.node("two")
    cluster.publish(PLAIN[:1], pool=one, node=one)
    cluster.publish(PLAIN[:2], pool=two, node=two)
    listed: list[Json] = [
        {"name": "pair", "deviceClassName": gpu, "count": 2},
        {"name": "single", "deviceClassName": gpu},
    ]
    scheduled = referee.fits(claims={"gpu": cluster.claim([{"name": "gpu", "firstAvailable": listed}])})
    # 1.34 does not score nodes by their devices.
    assert scheduled.node in expected(Changed({one, two}, {two}, ("1.35",)), cluster.plane)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"spec": {"unschedulable": True}}, "unschedulable"),
        ({"spec": {"taints": [{"key": "example.com/x", "effect": "NoSchedule"}]}}, "taint"),
        ({"metadata": {"labels": {"kubectl-dra.test/owner": None}}}, "nodeSelector"),
    ],
    ids=["cordoned", "tainted", "not selected"],
)
def test_node_that_is_out_of_the_question(referee: Referee, change: Json, reason: str) -> None:
    cluster = referee.cluster
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=node)
    cluster.api.patch({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}, change)
    claim = cluster.claim([request(gpu)])
    cluster.pod(claims={"gpu": claim})
    message = cluster.unschedulable("pod")
    assert "cannot allocate all claims" not in message
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["no-eligible-node"]), answer.text
    groups = [group for group in answer.report["nodeGroups"] if node in group["nodes"]]
    assert [group["outcome"] for group in groups] == ["not-eligible"]
    assert reason in groups[0]["reason"]


# Generations


def test_generation_that_is_on_its_way(referee: Referee) -> None:
    cluster = referee.cluster
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish(PLAIN[:2], pool="pool", node=node)
    cluster.publish(PLAIN[:1], pool="pool", node=node, generation=2, slice_count=2)
    claims = {"gpu": cluster.claim([request(gpu)])}
    if expected(LOOSE_POOLS, cluster.plane):
        assert referee.fits(claims=claims).devices("gpu") == ["pool/gpu-0"]
    else:
        referee.rejected("pool-incomplete", claims=claims)


def test_only_the_newest_generation_counts(referee: Referee) -> None:
    cluster = referee.cluster
    node = cluster.node()
    gpu = cluster.device_class()
    cluster.publish([device("old-0"), device("old-1")], pool="pool", node=node)
    cluster.publish([device("new-0")], pool="pool", node=node, generation=2)
    scheduled = referee.fits("one", claims={"gpu": cluster.claim([request(gpu)], "one")})
    assert scheduled.devices("gpu") == ["pool/new-0"]
    referee.rejected("devices-held", "two", claims={"gpu": cluster.claim([request(gpu)], "two")})


def test_older_generation_that_is_complete_on_its_node(referee: Referee) -> None:
    cluster = referee.cluster
    one, two = cluster.node("one"), cluster.node("two")
    gpu = cluster.device_class()
    pool = cluster.name("pool")
    cluster.publish(PLAIN[:1], pool=pool, node=one)
    cluster.publish(PLAIN[1:2], pool=pool, node=two, generation=2)
    only_one = {"kubernetes.io/hostname": one}
    referee.fits(claims={"gpu": cluster.claim([request(gpu)])}, nodeSelector=only_one)


def test_newest_generation_is_of_another_node(referee: Referee) -> None:
    cluster = referee.cluster
    one, two = cluster.node("one"), cluster.node("two")
    gpu = cluster.device_class()
    pool = cluster.name("pool")
    cluster.publish(PLAIN[:1], pool=pool, node=one, slice_count=2)
    cluster.publish(PLAIN[1:2], pool=pool, node=two, generation=2)
    only_one, only_two = ({"kubernetes.io/hostname": name} for name in (one, two))
    loose = expected(LOOSE_POOLS, cluster.plane)
    where = {"nodeSelector": only_two} if loose else {}
    assert referee.fits("one", claims={"gpu": cluster.claim([request(gpu)], "one")}, **where).node == two
    claims = {"gpu": cluster.claim([request(gpu)], "two")}
    if loose:
        assert referee.fits("two", claims=claims, nodeSelector=only_one).node == one
    else:
        referee.rejected("pool-obsolete-for-node", "two", claims=claims, nodeSelector=only_one)


# Rules of an administrator


def _rule(referee: Referee, effect: str = "NoSchedule", device_name: str = "gpu-0") -> Json:
    cluster = referee.cluster
    version, *_ = versions_of("DeviceTaintRule", release_of(cluster.plane))
    selector = {"driver": cluster.driver, "pool": "pool", "device": device_name}
    return cluster.create(
        {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "DeviceTaintRule",
            "metadata": {"name": cluster.name(f"rule-{device_name}")},
            "spec": {
                "deviceSelector": selector,
                "taint": {"key": "example.com/maintenance", "value": "x", "effect": effect},
            },
        }
    )


def test_rule_leaves_the_other_device(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    _rule(referee)
    cluster.publish(PLAIN[:2], pool="pool", node=cluster.node())
    scheduled = referee.fits(claims={"gpu": cluster.claim([request(gpu)])})
    assert scheduled.devices("gpu") == ["pool/gpu-1"]


def test_rule_that_is_tolerated(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    _rule(referee)
    cluster.publish(PLAIN[:1], pool="pool", node=cluster.node())
    tolerations = [{"key": "example.com/maintenance", "operator": "Exists", "effect": "NoSchedule"}]
    referee.fits(claims={"gpu": cluster.claim([request(gpu, tolerations=tolerations)])})


def test_rule_on_the_only_device_until_it_is_deleted(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    rule = _rule(referee)
    cluster.publish(PLAIN[:1], pool="pool", node=cluster.node())
    answer = referee.rejected("devices-tainted", claims={"gpu": cluster.claim([request(gpu)])})
    assert rule["metadata"]["name"] in answer.report["causes"][0]["fix"]["text"]

    cluster.api.delete(rule)

    referee.proved(answer, cluster.scheduled("pod"))


def test_rule_without_an_effect(referee: Referee) -> None:
    cluster = referee.cluster
    gpu = cluster.device_class()
    needs_effect_none(cluster.plane)
    _rule(referee, "None")
    cluster.publish(PLAIN[:1], pool="pool", node=cluster.node())
    referee.fits(claims={"gpu": cluster.claim([request(gpu)])})


# What the allocator of this patch release does


def test_counters_of_a_device_that_is_refused(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, PARTITIONS)
    gpu = cluster.device_class()
    devices = [{**HALVES[0], **taint("bad")}, HALVES[1]]
    cluster.publish(devices, pool=cluster.name("pool"), node=cluster.node(), shared_counters=CARD)
    _agree(referee, [request(gpu)])


def test_shared_device_gives_its_counters_back(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, PARTITIONS, SHARES)
    gpu = cluster.device_class()
    driver = cluster.driver
    devices = [{**HALVES[0], "allowMultipleAllocations": True}, HALVES[1]]
    devices[0]["attributes"] = {"model": {"string": "whole"}}
    devices[1] = {**devices[1], "attributes": {"model": {"string": "half"}}}
    cluster.publish(devices, pool=cluster.name("pool"), node=cluster.node(), shared_counters=CARD)
    half = request(gpu, "b", selectors=[f'device.attributes["{driver}"].model == "half"'])
    listed: list[Json] = [{"name": "any", "deviceClassName": gpu}, {"name": "half", "deviceClassName": gpu}]
    _agree(referee, [{"name": "a", "firstAvailable": listed}, half])


def test_distinct_values_of_three(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, SHARES)
    gpu = cluster.device_class()
    attribute = f"{cluster.driver}/model"
    cluster.publish([MODELS[0], MODELS[1], MODELS[2]], pool="pool", node=cluster.node())
    _agree(referee, [request(gpu, count=3)], constraints=[{"distinctAttribute": attribute}])


def test_all_of_shared_devices_with_one_full(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, SHARES)
    gpu = cluster.device_class()
    cluster.publish([shared("gpu-0", "10Gi"), shared("gpu-1", "10Gi")], pool="pool", node=cluster.node())
    memory = {"requests": {"memory": "8Gi"}}
    cluster.scheduled(cluster.pod("one", claims={"gpu": cluster.claim([request(gpu, capacity=memory)], "one")}))
    _agree(referee, [request(gpu, capacity=memory, allocationMode="All")])


def test_match_and_distinct_over_three_requests(referee: Referee) -> None:
    cluster = referee.cluster
    needs(cluster.plane, SHARES)
    gpu = cluster.device_class()
    cluster.publish(NUMA, pool="pool", node=cluster.node())
    numa = f"{cluster.driver}/numa"
    _agree(
        referee,
        [request(gpu, name) for name in "abc"],
        constraints=[
            {"matchAttribute": numa, "requests": ["a", "b"]},
            {"distinctAttribute": numa, "requests": ["b", "c"]},
        ],
    )


def _agree(referee: Referee, requests: list[Json], **devices: Any) -> None:
    """Whatever the scheduler says of the only claim, explain says too."""
    cluster = referee.cluster
    cluster.pod(claims={"gpu": cluster.claim(requests, **devices)}, schedulingGates=[{"name": "example.com/wait"}])
    answer = referee.explain("pod/pod")
    _ungate(referee, "pod")
    if answer.report["placements"]:
        referee.same(answer, cluster.scheduled("pod"))
    else:
        message = cluster.unschedulable("pod")
        again = referee.explain("pod/pod")
        assert again.code == 1, f"{message}\n{again.text}"


def _ungate(referee: Referee, name: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": referee.cluster.namespace}}
    referee.cluster.api.patch(pod, {"spec": {"schedulingGates": None}})


def test_allocation_from_before_the_gate(referee: Referee) -> None:
    """A scheduler without binding conditions allocates without a timestamp; one with them can add no pod then."""
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    shared = resource_object("ResourceClaim", cluster.claim([request(gpu)], "shared"))
    shared["metadata"]["namespace"] = cluster.namespace
    result = {"request": "gpu", "driver": cluster.driver, "pool": "pool", "device": "gpu-0"}
    cluster.api.patch(shared, {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    cluster.api.patch(shared, {"status": {"allocation": {"devices": {"results": [result]}}}}, "status")
    gates = gates_of(cluster.plane)
    if not (gates.get("DRADeviceBindingConditions") and gates.get("DRAResourceClaimDeviceStatus")):
        assert referee.fits(claims={"gpu": "shared"}).devices("gpu") == ["pool/gpu-0"]
        return
    cluster.pod("pod", claims={"gpu": "shared"})
    text = Changed("field is immutable", "field cannot be modified once set", ("1.37",))
    referee.condition("pod", "SchedulerError", expected(text, cluster.plane))
    answer = referee.explain("pod/pod")
    assert (answer.code, answer.causes) == (1, ["allocation-without-timestamp"])
    assert (
        f"kubectl delete resourceclaim/shared -n {cluster.namespace}"
        in answer.report["causes"][0]["fix"]["commands"][0]["text"]
    )

    # What is proposed lets the next pod run.
    cluster.api.delete(shared)
    claims = partial(cluster.api.list, RESOURCE_API, "ResourceClaim", cluster.namespace)
    wait(lambda: None if claims() else True, "the claim to go")
    cluster.claim([request(gpu)], "shared")
    assert cluster.scheduled("pod", 60).devices("gpu") == ["pool/gpu-0"]


def test_evicted_as_soon_as_it_is_scheduled(referee: Referee) -> None:
    """A toleration without an effect lets the pod be placed, and the controller deletes it at once."""
    cluster = referee.cluster
    needs(cluster.plane, "DRADeviceTaints")
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0", **taint("bad", "NoExecute"))], pool="pool", node=cluster.node())
    claims = {"gpu": cluster.claim([request(gpu, tolerations=[{"operator": "Exists"}])])}
    spec = cluster.pod_spec(claims=claims)
    answer = referee.explain_manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec})
    assert (answer.code, answer.causes) == (1, ["evicted-at-once"]), answer.text
    cluster.pod("pod", claims=claims, terminationGracePeriodSeconds=600)
    cluster.scheduled("pod")
    wait(lambda: cluster.get("Pod", "pod", "v1")["metadata"].get("deletionTimestamp"), "the eviction", 30)
