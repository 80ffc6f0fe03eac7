"""Vectors that were run on the real allocator of 1.36.2; names are those of the specification."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kubectl_dra.allocation.attempt import INVALID_POOLS, Attempt, AttemptVerdict
from kubectl_dra.allocation.features import Features, KnownDefects
from kubectl_dra.allocation.pools import SliceIndex, pools_of_node
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.releases import UNTOLD, Release, default_features
from tools.builders import (
    allocate,
    claim,
    cycle,
    device,
    first_available,
    held,
    picked,
    request,
    slice_of,
    sub,
    written,
)


def fatal(attempt: Attempt) -> str:
    assert attempt.verdict is AttemptVerdict.ERROR, attempt
    return attempt.message


def test_vo1_pools_slices_and_devices_in_order() -> None:
    slices = [
        slice_of(device("d1"), pool="pB", name="z"),
        slice_of(device("d9"), device("d2"), pool="pA", name="b", count=2),
        slice_of(device("x5"), device("x1"), pool="pA", name="a", count=2),
    ]
    assert picked(allocate(slices, claim(request(count=4)))) == ["x5", "x1", "d9", "d2"]


def test_vo2_pools_with_binding_conditions_last() -> None:
    binding: dict[str, Any] = {"bindingConditions": ["x"], "bindingFailureConditions": ["y"]}
    slices = [
        slice_of(device("d1", **binding), pool="pA"),
        slice_of(device("d9"), pool="pB"),
        slice_of(device("d10"), device("d11", **binding), pool="pC"),
    ]
    assert picked(allocate(slices, claim(request(count=4)))) == ["d9", "d1", "d10", "d11"]


def test_vo3_byte_order_of_pool_names() -> None:
    slices = [slice_of(device(f"in-{pool.lower()}"), pool=pool) for pool in ("p10", "p9", "P")]
    assert picked(allocate(slices, claim(request(count=3)))) == ["in-p", "in-p10", "in-p9"]


def test_vo4_an_empty_list_of_binding_conditions_counts() -> None:
    slices = [slice_of(device("d1", bindingConditions=[]), pool="pA"), slice_of(device("d9"), pool="pB")]
    assert picked(allocate(slices, claim(request()))) == ["d9"]


@pytest.mark.parametrize(
    ("node", "zone", "expected"), [("n1", "a", ["d2", "d3"]), ("n2", "b", ["d1", "d3"]), ("n3", "c", None)]
)
def test_vn1_per_device_node_selection(node: str, zone: str, expected: list[str] | None) -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "In", "values": ["a"]}]}]}
    slices = [
        slice_of(
            device("d1", nodeName="n2"),
            device("d2", nodeSelector=selector),
            device("d3", allNodes=True),
            perDeviceNodeSelection=True,
        )
    ]
    assert picked(allocate(slices, claim(request(count=2)), node=node, labels={"z": zone})) == expected


def test_vn2_node_selectors_merge_into_one_term() -> None:
    def selector(*entries: dict[str, Any]) -> dict[str, Any]:
        return {"nodeSelectorTerms": [{"matchExpressions": list(entries)}]}

    slices = [
        slice_of(
            device("d1"),
            pool="p1",
            nodeSelector=selector(
                {"key": "z", "operator": "In", "values": ["a", "b"]}, {"key": "y", "operator": "Exists"}
            ),
        ),
        slice_of(
            device("d2"),
            pool="p2",
            nodeSelector=selector(
                {"key": "z", "operator": "In", "values": ["b", "a"]}, {"key": "w", "operator": "DoesNotExist"}
            ),
        ),
    ]
    attempt = allocate(slices, claim(request(count=2)), labels={"z": "a", "y": "1"})
    assert written(attempt.allocations[0])["nodeSelector"] == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "z", "operator": "In", "values": ["a", "b"]},
                    {"key": "y", "operator": "Exists"},
                    {"key": "w", "operator": "DoesNotExist"},
                ]
            }
        ]
    }


def test_vn3_binds_to_node_pins_the_allocation() -> None:
    attempt = allocate([slice_of(device("d1", bindsToNode=True), allNodes=True)], claim(request()))
    assert written(attempt.allocations[0])["nodeSelector"] == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    }


def test_ve11_duplicate_device_name_makes_the_pool_invalid() -> None:
    slices = [slice_of(device("d1"), device("d1"))]
    assert allocate(slices, claim(request())).message == INVALID_POOLS
    assert "is currently invalid" in fatal(allocate(slices, claim(request(all=True))))


def test_ve12_too_many_slices_make_the_pool_incomplete() -> None:
    assert (
        picked(allocate([slice_of(device("d1"), name="a"), slice_of(device("d2"), name="b")], claim(request()))) is None
    )


def test_ve13_an_outdated_complete_pool_is_still_used() -> None:
    slices = [slice_of(device("d1"), name="a"), slice_of(device("d2"), name="b", node="n2", generation=2)]
    assert picked(allocate(slices, claim(request()))) == ["d1"]
    assert picked(allocate(slices, claim(request()), node="n2")) == ["d2"]


def test_ve13b_an_incomplete_old_generation_is_obsolete() -> None:
    slices = [
        slice_of(device("d1"), name="a", count=2),
        slice_of(device("d3"), name="b", node="n3", count=2),
        slice_of(device("d2"), name="c", node="n2", generation=2),
    ]
    attempt = allocate(slices, claim(request()))
    assert picked(attempt) is None
    assert attempt.pools is not None and attempt.pools.obsolete == (("d", "p"),)


def test_ve10_counter_slices_of_another_node_block_mode_all() -> None:
    slices = [slice_of(device("d1")), slice_of(pool="p2", node="n2", counters={"set.c": 1}, count=2)]
    assert "currently being updated" in fatal(allocate(slices, claim(request(all=True))))
    assert picked(allocate(slices, claim(request()))) == ["d1"]
    fixed = replace(KnownDefects(), counter_slices_everywhere=False)
    assert picked(allocate(slices, claim(request(all=True)), defects=fixed)) == ["d1"]


def test_vallunrel_mode_all_fails_on_a_pool_of_another_driver() -> None:
    slices = [slice_of(device("d1")), slice_of(device("x"), driver="other", pool="q", count=2)]
    assert "other/q is currently being updated" in fatal(allocate(slices, claim(request(all=True))))
    listed = first_available("r", sub("one"), sub("all", all=True))
    assert "other/q is currently being updated" in fatal(allocate(slices, claim(listed)))


def test_vpd_selectors_run_before_the_devices_own_node() -> None:
    slices = [slice_of(device("d1", a="A", nodeName="n1"), device("d2", nodeName="n2"), perDeviceNodeSelection=True)]
    selector = 'device.attributes["d"].a == "A"'
    assert picked(allocate(slices, claim(request(selector=selector)))) == ["d1"]
    assert "no such key: a" in fatal(allocate(slices, claim(request(selector=selector, count=2))))
    assert "no such key: a" in fatal(allocate(slices, claim(request(selector=selector)), node="n2"))


def test_vc_errors_count_only_where_a_device_is_reached() -> None:
    slices = [slice_of(device("d1", a="A"), device("d2"))]
    selector = 'device.attributes["d"].a == "A"'
    assert picked(allocate(slices, claim(request(selector=selector)))) == ["d1"]
    assert "selector #0: CEL runtime error" in fatal(allocate(slices, claim(request(selector=selector, count=2))))
    assert "CEL runtime error" in fatal(allocate(slices, claim(request(selector=selector, all=True))))
    assert "CEL compile error" in fatal(allocate(slices, claim(request(selector="foo"))))
    assert "could not be converted to bool" in fatal(
        allocate(slices, claim(request(selector='device.attributes["d"].a')))
    )
    assert "could not retrieve device class" in fatal(allocate(slices, claim(request(class_name="nosuch"))))


def test_vc6_vc7_more_than_32_devices() -> None:
    slices = [slice_of(*(device(f"d{i}") for i in range(50)))]
    assert "number of requested devices 33 exceeds" in fatal(allocate(slices, claim(request(count=33))))
    assert "number of requested devices 40" in fatal(
        allocate(slices, claim(request("a", count=20), request("b", count=20)))
    )


def test_vz0_an_unreadable_version_fails_every_selector() -> None:
    slices = [slice_of(device("d1", attributes={"v": {"version": "not-semver"}}))]
    assert "parse semantic version" in fatal(allocate(slices, claim(request())))
    assert picked(allocate(slices, claim(request()), classes={"c": ()})) == ["d1"]


def test_ve15_shareable_devices() -> None:
    shared = [slice_of(device("d1", m=10, multi=True))]
    assert picked(allocate(shared, claim(request(count=2, m=1)))) is None
    assert picked(allocate(shared, claim(request("a", m=1), request("b", m=1)))) == ["d1", "d1"]
    assert picked(allocate(shared, claim(request("a"), request("b")))) is None
    assert picked(allocate(shared, claim(request(m=5), name="x"), claim(request(m=5), name="y"))) == ["d1", "d1"]
    bare = [slice_of(device("d1", multi=True))]
    assert picked(allocate(bare, claim(request("a"), request("b"), request("c")))) == ["d1", "d1", "d1"]


def test_ve15f_capacity_filters_exclusive_devices() -> None:
    slices = [slice_of(device("d1", m=10), device("d2", m=20))]
    assert picked(allocate(slices, claim(request(m=15)))) == ["d2"]
    unknown: dict[str, Any] = {"capacity": {"requests": {"other": "1"}}}
    assert picked(allocate(slices, claim(request(**unknown)))) is None


VALUES = {"value": "10", "requestPolicy": {"default": "2", "validValues": ["2", "4"]}}
RANGE = {
    "value": "8Gi",
    "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi", "step": "512Mi"}},
}
PLAIN_RANGE = {"value": "8Gi", "requestPolicy": {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi"}}}
DEFAULT = {"value": "8Gi", "requestPolicy": {"default": "1Gi"}}
SMALL_STEP = {"value": "10", "requestPolicy": {"default": "2", "validRange": {"min": "2", "step": "2"}}}
MIN_MAX = {"value": "10", "requestPolicy": {"default": "2", "validRange": {"min": "2", "max": "5"}}}


@pytest.mark.parametrize(
    ("capacity", "asked", "consumed"),
    [
        (VALUES, "3", "4"),
        (VALUES, None, "2"),
        (VALUES, "5", None),
        (RANGE, "100Mi", "1Gi"),
        (RANGE, "1200Mi", "1536Mi"),
        (RANGE, "1025Mi", "1536Mi"),
        (RANGE, "8191Mi", "8Gi"),
        (RANGE, "8193Mi", None),
        (RANGE, "9Gi", None),
        (PLAIN_RANGE, "1200Mi", "1200Mi"),
        (DEFAULT, "3Gi", "3Gi"),
        (DEFAULT, None, "1Gi"),
        (DEFAULT, "0", "0"),
        (MIN_MAX, "1", "2"),
        (MIN_MAX, "3", "3"),
        (MIN_MAX, "5500m", None),
        (SMALL_STEP, "3", "4"),
        (SMALL_STEP, "3500m", "4"),
        (SMALL_STEP, "4100m", "6"),
        (SMALL_STEP, "9", "10"),
        (SMALL_STEP, "11", None),
        (
            {"value": "10G", "requestPolicy": {"default": "1G", "validRange": {"min": "1G", "step": "1G"}}},
            "2G",
            "1953125Ki",
        ),
        ({"value": "8Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}}, "1024Mi", "1Gi"),
    ],
)
def test_q2_amounts_are_rounded_by_the_policy(
    capacity: dict[str, Any], asked: str | None, consumed: str | None
) -> None:
    slices = [slice_of(device("d1", multi=True, capacity={"m": capacity}))]
    attempt = allocate(slices, claim(request(m=asked) if asked else request()))
    if consumed is None:
        assert picked(attempt) is None
    else:
        assert written(attempt.allocations[0])["devices"]["results"][0]["consumedCapacity"] == {"m": consumed}


def test_vd8_an_unrequested_capacity_is_taken_whole() -> None:
    slices = [slice_of(device("d1", multi=True, capacity={"m": {"value": "10"}, "n": {"value": "5"}}))]
    two = (claim(request(m=1), name="x"), claim(request(m=1), name="y"))
    assert picked(allocate(slices, *two)) is None
    (result,) = allocate(slices, two[0]).allocations[0].results
    assert {name: str(amount) for name, amount in result.consumed_capacity.items()} == {"m": "1", "n": "5"}


def test_vd1_all_on_a_device_used_up_by_the_same_pod() -> None:
    slices = [slice_of(device("d1", m=10, multi=True))]
    assert picked(allocate(slices, claim(request("a", m=6), request("b", all=True, m=6)))) is None
    assert picked(allocate(slices, claim(request("a", m=4), request("b", all=True, m=6)))) == ["d1", "d1"]


def test_vs_shares_and_exclusive_allocations() -> None:
    multi, plain = slice_of(device("d1", m=10, multi=True)), slice_of(device("d1", m=10))
    share: dict[str, Any] = {"shareID": "s", "consumedCapacity": {"m": "4"}}
    assert picked(allocate([multi], claim(request(m=1)), allocated=[held("d1")])) is None
    assert picked(allocate([plain], claim(request()), allocated=[held("d1", **share)])) is None
    assert picked(allocate([plain], claim(request(m=6)), allocated=[held("d1", **share)])) == ["d1"]
    assert picked(allocate([multi], claim(request(m=6)), allocated=[held("d1", **share)])) == ["d1"]
    assert picked(allocate([multi], claim(request(m=7)), allocated=[held("d1", **share)])) is None
    assert picked(allocate([multi], claim(request(m=7, admin=True)), allocated=[held("d1", **share)])) is None
    two = slice_of(device("d1", m=10, multi=True), device("d2", m=10, multi=True))
    assert picked(allocate([two], claim(request(all=True, m=7)), allocated=[held("d1", **share)])) == ["d2"]
    off = replace(Features(), consumable_capacity=False)
    assert "DRAConsumableCapacity feature is disabled" in fatal(allocate([multi], claim(request(m=1)), features=off))
    stable = Features.from_gates(default_features(UNTOLD) - {"DRAConsumableCapacity", "DRADeviceBindingConditions"})
    assert stable.stable
    assert picked(allocate([multi], claim(request(m=99)), features=stable)) == ["d1"]


def counters_pool(*devices: dict[str, Any], **counters: object) -> list[Any]:
    return [
        slice_of(*devices, name="devices", count=2),
        slice_of(
            name="counters", count=2, counters={key.replace("_", "."): amount for key, amount in counters.items()}
        ),
    ]


def test_ve5_admin_access_charges_counters_again() -> None:
    for needed, expected in ((6, None), (5, ["d1"])):
        slices = counters_pool(device("d1", consumes={"set.c": needed}), set_c=10)
        assert picked(allocate(slices, claim(request(admin=True)), allocated=[held("d1")])) == expected


def test_ve5b_one_overdrawn_counter_blocks_the_pool() -> None:
    slices = counters_pool(
        device("d1", consumes={"set.c": 12}), device("d2", consumes={"other.c": 1}), device("d3"), set_c=10, other_c=10
    )
    assert picked(allocate(slices, claim(request()), allocated=[held("d1")])) == ["d3"]


def test_vd9_a_share_without_capacity_charges_again() -> None:
    slices = counters_pool(device("d1", multi=True, m=10, consumes={"set.c": 6}), set_c=10)
    assert picked(allocate(slices, claim(request(m=1)), allocated=[held("d1", shareID="s")])) is None
    used = held("d1", shareID="s", consumedCapacity={"m": "1"})
    assert picked(allocate(slices, claim(request(m=1)), allocated=[used])) == ["d1"]


def test_vt1_counters_leak_when_a_tainted_device_is_refused() -> None:
    tainted = device("d1", consumes={"set.c": 6}, taint="k:NoSchedule")
    good = device("d2", consumes={"set.c": 6})
    leak = counters_pool(tainted, good, set_c=10)
    assert picked(allocate(leak, claim(request()))) is None
    assert picked(allocate(leak, claim(request()), defects=KnownDefects.none())) == ["d2"]
    assert picked(allocate(counters_pool(good, tainted, set_c=10), claim(request()))) == ["d2"]


def test_a_device_refused_for_its_capacity_stays_in_constraints_before_1363() -> None:
    """The scheduler of 1.36.4 allocates such claims; where the device stays, it is its own rival when tried again."""
    slices = [slice_of(device("d1", a="x", multi=True, m=10), device("d2", a="y", multi=True, m=10))]
    every = request(allocationMode="All", selector='device.attributes["d"].a == "x"')
    claims = claim(request(), name="one"), claim(every, name="two", constraints=[{"distinctAttribute": "d/a"}])
    assert picked(allocate(slices, *claims, defects=KnownDefects.of_release(Release(1, 36), 3))) == ["d2", "d1"]
    early = allocate(slices, *claims, defects=KnownDefects.of_release(Release(1, 36), 2))
    assert "cannot add device d/p/d1" in fatal(early)


def test_ve4_drivers_with_one_pool_name_share_counter_tables() -> None:
    slices = [
        slice_of(device("a1", consumes={"s.c": 4}), driver="da", name="da1", count=2),
        slice_of(driver="da", name="da2", count=2, counters={"s.c": 4}),
        slice_of(
            device("b1", consumes={"t.c": 4}), device("b2", consumes={"t.c": 4}), driver="db", name="db1", count=2
        ),
        slice_of(driver="db", name="db2", count=2, counters={"t.c": 4}),
    ]
    classes = {"a": ('device.driver == "da"',), "b": ('device.driver == "db"',)}
    both = claim(request("x", class_name="a"), request("y", class_name="b", count=2))
    only_b = claim(request("y", class_name="b", count=2))
    assert picked(allocate(slices, only_b, classes=classes)) is None
    assert picked(allocate(slices, both, classes=classes)) == ["a1", "b1", "b2"]
    assert picked(allocate(slices, both, classes=classes, defects=KnownDefects.none())) is None


def test_va_admin_access() -> None:
    slices = [slice_of(device("d1"), device("d2"))]
    taken = [held("d1")]
    assert picked(allocate(slices, claim(request(all=True, admin=True)), allocated=taken)) == ["d1", "d2"]
    assert picked(allocate(slices, claim(request(all=True)), allocated=taken)) is None
    mixed = claim(request("a", admin=True), request("b"))
    assert picked(allocate(slices, mixed, allocated=taken)) == ["d1", "d2"]
    assert picked(allocate(slices, claim(request("a", admin=True), request("b", admin=True)))) == ["d1", "d2"]
    blocked = (claim(request(admin=True), name="x"), claim(request(count=2), name="y"))
    assert picked(allocate(slices, *blocked)) is None
    shared = (claim(request(), name="x"), claim(request(admin=True), name="y"))
    assert picked(allocate(slices, *shared)) == ["d1", "d1"]


def test_ve1_distinct_attribute_remembers_one_value_per_request() -> None:
    distinct = [{"distinctAttribute": "d/a"}]
    slices = [slice_of(*(device(f"d{i}", a=value) for i, value in enumerate("ABAC", 1)))]
    assert picked(allocate(slices, claim(request(count=3), constraints=distinct))) == ["d1", "d2", "d3"]
    assert picked(allocate(slices, claim(request(count=3), constraints=distinct), defects=KnownDefects.none())) == [
        "d1",
        "d2",
        "d4",
    ]
    twice = [slice_of(*(device(f"d{i}", a=value) for i, value in enumerate("AAB", 1)))]
    assert picked(allocate(twice, claim(request(count=2), constraints=distinct))) == ["d1", "d3"]


def test_vt3_attribute_lookup_by_domain() -> None:
    slices = [
        slice_of(
            device("d1"),
            device("d2", a="A"),
            device("d3", attributes={"d/a": {"string": "A"}}),
            device("d4", attributes={"other/a": {"string": "A"}}),
        )
    ]
    assert picked(allocate(slices, claim(request(count=2), constraints=[{"matchAttribute": "d/a"}]))) == ["d2", "d3"]


def test_vt4_types_count_in_constraints() -> None:
    slices = [
        slice_of(
            device("d1", attributes={"v": {"version": "1.0.0"}}),
            device("d2", attributes={"v": {"string": "1.0.0"}}),
            device("d3", attributes={"v": {"version": "1.0.0"}}),
        )
    ]
    assert picked(allocate(slices, claim(request(count=2), constraints=[{"matchAttribute": "d/v"}]))) == ["d1", "d3"]
    assert picked(allocate(slices, claim(request(count=2), constraints=[{"distinctAttribute": "d/v"}]))) == ["d1", "d2"]


def test_ve9_a_constraint_that_all_cannot_meet_is_fatal() -> None:
    slices = [slice_of(device("d1", a="A"), device("d2", a="B"))]
    message = fatal(allocate(slices, claim(request(all=True), constraints=[{"matchAttribute": "d/a"}])))
    assert message.endswith("cannot add device d/p/d2 because a claim constraint would not be satisfied")


def test_vm1_a_constraint_covers_only_its_requests() -> None:
    slices = [slice_of(*(device(f"d{i}", a=value) for i, value in enumerate("ABA", 1)))]
    constraint = [{"matchAttribute": "d/a", "requests": ["r0", "r2"]}]
    wanted = claim(request("r0"), request("r1"), request("r2"), constraints=constraint)
    assert picked(allocate(slices, wanted)) == ["d1", "d2", "d3"]


def test_vp_prioritized_lists() -> None:
    slices = [slice_of(*(device(f"d{i:02}") for i in range(50)))]
    listed = claim(first_available("a", sub("x", count=30), sub("y", count=2)), request("b", count=5))
    attempt = allocate(slices, listed)
    assert [result.request for result in attempt.allocations[0].results] == ["a/y"] * 2 + ["b"] * 5
    too_many = claim(first_available("a", sub("x", count=30), sub("y", count=28)), request("b", count=5))
    assert "number of requested devices 33" in fatal(allocate(slices, too_many))


def test_vfa_lists_compete_and_are_forced() -> None:
    slices = [slice_of(device("big", a="big"), device("s1", a="small"), device("s2", a="small"))]
    big, small = 'device.attributes["d"].a == "big"', 'device.attributes["d"].a == "small"'
    lists = [first_available(name, sub("big", selector=big), sub("small", selector=small)) for name in ("x", "y")]
    assert picked(allocate(slices, claim(*lists))) == ["big", "s1"]
    forced = claim(lists[0], request("z", selector=big))
    assert picked(allocate(slices, forced)) == ["s1", "big"]


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ((), None),
        (({"key": "k", "operator": "Equal", "value": "v"},), ["d1"]),
        (({"key": "k", "operator": "Equal", "value": "w"},), None),
        (({"key": "k", "operator": "Exists", "effect": "NoSchedule"},), None),
        (({"operator": "Exists"},), ["d1"]),
    ],
)
def test_vtt_taints_and_tolerations(tolerations: tuple[dict[str, str], ...], expected: list[str] | None) -> None:
    slices = [slice_of(device("d1", taint="k=v:NoExecute"))]
    assert picked(allocate(slices, claim(request(tolerations=list(tolerations))))) == expected


@pytest.mark.parametrize("effect", ["None", "SomethingNew"])
def test_vtt5_other_effects_never_block(effect: str) -> None:
    assert picked(allocate([slice_of(device("d1", taint=f"k:{effect}"))], claim(request()))) == ["d1"]


def test_ve6_config_of_classes_and_claims() -> None:
    opaque = {"driver": "d", "parameters": {"x": 1}}
    slices = [slice_of(device("d1"), device("d2"))]
    config = [{"requests": ["r0", "r1"], "opaque": opaque}, {"requests": ["r0/b"], "opaque": opaque}]
    wanted = claim(first_available("r0", sub("a"), sub("b")), request("r1"), config=config)
    results = allocate(slices, wanted, class_config=[{"opaque": opaque}]).allocations
    assert [entry["source"] for entry in results[0].config] == ["FromClass", "FromClaim", "FromClaim"]
    assert results[0].config[0]["requests"] == ["r0/a", "r1"]
    fixed = allocate(
        slices, wanted, class_config=[{"opaque": opaque}], defects=KnownDefects.of_release(Release(1, 37))
    ).allocations
    assert [("requests" in entry) for entry in fixed[0].config] == [False, False]


def test_vp3_a_claim_without_requests_gets_an_empty_result() -> None:
    attempt = allocate([slice_of(device("d1"))], claim())
    assert attempt.verdict is AttemptVerdict.ALLOCATED and written(attempt.allocations[0]) == {"devices": {}}


def test_k5_the_counter_table_of_a_cycle_is_shared_by_nodes() -> None:
    from kubectl_dra.api.nodes import Node

    shared = cycle(counters_pool(device("d1", consumes={"set.c": 6}), set_c=10))
    first = shared.attempt(Node.named("n1"), [claim(request())])
    second = shared.attempt(Node.named("n1"), [claim(request())])
    assert picked(first) == picked(second) == ["d1"]


def test_shared_counters_of_other_nodes_count_where_their_pool_is_not_in_order() -> None:
    whole = [
        slice_of(device("d1", consumes={"s.c": 1}), pool="own", count=2),
        slice_of(pool="own", name="own-counters", count=2, counters={"s.c": 4}),
    ]
    foreign = [
        slice_of(device("d2", consumes={"s.c": 1}), pool="other", node="n2", name="other", count=2),
        slice_of(pool="other", node="n2", name="other-counters", count=2, counters={"s.c": 4}),
    ]
    everything = claim(request(all=True))
    seen = pools_of_node(SliceIndex([*foreign, *whole]), Node.named("n1"), Features(), KnownDefects())
    assert [pool.id.name for pool in seen.pools] == ["own"]
    assert picked(allocate([*foreign, *whole], everything)) == ["d1"]
    assert "other is currently being updated" in fatal(allocate([foreign[1], *whole], everything))
    assert picked(allocate([foreign[1], *whole], claim(request()))) == ["d1"]
    newer = slice_of(pool="other", node="n3", name="newer", generation=2, count=2)
    assert picked(allocate([foreign[1], newer, *whole], everything)) == ["d1"]
    seen = pools_of_node(SliceIndex([foreign[1], newer, *whole]), Node.named("n1"), Features(), KnownDefects())
    assert [pool.name for pool in seen.obsolete] == ["other"]
    assert not pools_of_node(SliceIndex([foreign[1]]), Node.named("n1"), Features(), KnownDefects.none()).pools
