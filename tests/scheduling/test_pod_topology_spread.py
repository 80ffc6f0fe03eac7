"""PodTopologySpread: DoNotSchedule constraints, which nodes and pods count, and what eviction changes."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.pod_topology_spread import PodTopologySpread, TooManyInDomain
from tools.scheduling.small_clusters import HOSTNAME, JSON, ZONE, asked, node, pod, refused, state, within

SKEW = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
APP = {"app": "web"}
ZONES = [node("a1", "z1"), node("a2", "z1"), node("b1", "z2")]


def spread(key: str = ZONE, skew: int = 1, **fields: Any) -> JSON:
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": APP},
        **fields,
    }


def told(objects: list[JSON], *constraints: JSON, labels: dict[str, str] = APP, **spec: Any) -> dict[str, str]:
    raw = pod("p", labels=labels, topologySpreadConstraints=list(constraints), **spec)
    return refused(PodTopologySpread, raw, state(objects))


def test_a_pod_without_hard_constraints_is_not_looked_at() -> None:
    soft = pod("p", topologySpreadConstraints=[spread(whenUnsatisfiable="ScheduleAnyway")])
    assert asked(PodTopologySpread, soft, state(ZONES)).skipped
    assert asked(PodTopologySpread, pod("p"), state(ZONES)).skipped


def test_a_domain_has_at_most_max_skew_more_than_the_emptiest() -> None:
    objects = [*ZONES, pod("x", "a1", APP)]
    assert told(objects, spread()) == {"a1": SKEW, "a2": SKEW}
    assert told(objects, spread(skew=2)) == {}
    assert told([*objects, pod("y", "b1", APP)], spread()) == {}


def test_the_reason_tells_the_numbers() -> None:
    cluster = state([*ZONES, pod("x", "a1", APP)])
    plugin = asked(PodTopologySpread, pod("p", labels=APP, topologySpreadConstraints=[spread()]), cluster)
    found = plugin.filter(cluster.nodes["a2"])
    assert found is not None and found.resolvable
    assert found.reasons == (TooManyInDomain(ZONE, "z1", 1, 0, 1, 2, 1),)


def test_pods_of_other_namespaces_other_labels_and_ending_ones_do_not_count() -> None:
    others = [pod("x", "a1", APP, "far"), pod("y", "a1", {"app": "db"}), pod("z", "a1", APP, ending=True)]
    assert told([*ZONES, *others], spread()) == {}


def test_a_pod_that_its_own_selector_does_not_mean_adds_nothing() -> None:
    assert told([*ZONES, pod("x", "a1", APP)], spread(), labels={"app": "db"}) == {}
    two = [pod("x", "a1", APP), pod("y", "a2", APP)]
    assert told([*ZONES, *two], spread(), labels={"app": "db"}) == {"a1": SKEW, "a2": SKEW}


def test_a_selector_that_is_absent_or_empty_counts_no_pods() -> None:
    pods = [pod(f"x{number}", "a1", APP) for number in range(3)]
    absent = spread()
    del absent["labelSelector"]
    assert told([*ZONES, *pods], absent) == {}
    assert told([*ZONES, *pods], spread(labelSelector={})) == {}


def test_a_node_without_the_label_is_in_no_domain() -> None:
    assert told([*ZONES, node("c")], spread()) == {"c": NO_LABEL}


def test_a_node_that_lacks_the_label_of_one_constraint_counts_for_none() -> None:
    """The pod on the node without a rack is not counted in its zone."""
    racks = [node("a", "z1", labels={"rack": "r1"}), node("b", "z2", labels={"rack": "r2"}), node("c", "z2")]
    objects = [*racks, pod("x", "c", APP)]
    assert told(objects, spread(), spread("rack")) == {"c": NO_LABEL}
    assert told(objects, spread()) == {"b": SKEW, "c": SKEW}


def test_the_first_constraint_that_fails_is_told() -> None:
    assert told([*ZONES, node("c"), pod("x", "a1", APP)], spread(HOSTNAME), spread()) == {
        "a1": SKEW,
        "a2": SKEW,
        "c": NO_LABEL,
    }


@pytest.mark.parametrize(("least", "refused_nodes"), [(2, set()), (3, {"a1", "a2"})])
def test_with_fewer_domains_than_min_domains_the_least_is_zero(least: int, refused_nodes: set[str]) -> None:
    objects = [*ZONES, pod("x", "a1", APP), pod("y", "b1", APP)]
    found = told(objects, spread(minDomains=least))
    assert set(found) == (refused_nodes | {"b1"} if refused_nodes else set())


def test_nodes_that_the_pod_cannot_be_on_do_not_count() -> None:
    """Zone z2 is not for the pod, so that z1 is the only domain."""
    objects = [*ZONES, pod("x", "a1", APP)]
    assert told(objects, spread(), nodeSelector={ZONE: "z1"}) == {}
    ignoring = told(objects, spread(nodeAffinityPolicy="Ignore"), nodeSelector={ZONE: "z1"})
    assert ignoring == {"a1": SKEW, "a2": SKEW}
    required = {"nodeSelectorTerms": [{"matchExpressions": [within(ZONE, "z1")]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert told(objects, spread(), affinity=affinity) == {}


def test_tainted_nodes_count_unless_the_constraint_says_otherwise() -> None:
    tainted = node("b1", "z2", taints=[{"key": "k", "effect": "NoSchedule"}])
    objects = [node("a1", "z1"), tainted, pod("x", "a1", APP)]
    assert told(objects, spread()) == {"a1": SKEW}
    assert told(objects, spread(nodeTaintsPolicy="Honor")) == {}
    tolerating: JSON = {"tolerations": [{"key": "k", "operator": "Exists"}]}
    assert told(objects, spread(nodeTaintsPolicy="Honor"), **tolerating) == {"a1": SKEW}
    preferred = node("b1", "z2", taints=[{"key": "k", "effect": "PreferNoSchedule"}])
    assert told([node("a1", "z1"), preferred, pod("x", "a1", APP)], spread(nodeTaintsPolicy="Honor")) == {"a1": SKEW}


def test_a_domain_that_does_not_count_has_no_pods() -> None:
    """Pods on a node that is left out are not counted for it either."""
    tainted = node("b1", "z2", taints=[{"key": "k", "effect": "NoSchedule"}])
    pods = [pod(f"x{number}", "b1", APP) for number in range(3)]
    assert told([node("a1", "z1"), tainted, *pods], spread(nodeTaintsPolicy="Honor")) == {}


def test_match_label_keys_add_the_pods_own_values() -> None:
    objects = [*ZONES, pod("old", "a1", {**APP, "hash": "1"})]
    keys = spread(matchLabelKeys=["hash", "absent"])
    assert told(objects, keys, labels={**APP, "hash": "2"}) == {}
    assert told(objects, keys, labels={**APP, "hash": "1"}) == {"a1": SKEW, "a2": SKEW}


def test_evicting_a_pod_changes_its_domain_alone() -> None:
    cluster = state([*ZONES, pod("x", "a1", APP)])
    plugin = asked(PodTopologySpread, pod("p", labels=APP, topologySpreadConstraints=[spread()]), cluster)
    node_a1 = cluster.nodes["a1"]
    assert plugin.filter(node_a1) is not None
    assert plugin.filter(node_a1.changed(removed=node_a1.pods)) is None


def test_a_nominated_pod_counts_on_its_node() -> None:
    cluster = state(ZONES)
    plugin = asked(PodTopologySpread, pod("p", labels=APP, topologySpreadConstraints=[spread()]), cluster)
    high = Pod.from_json(pod("high", labels=APP))
    assert plugin.filter(cluster.nodes["b1"].changed(added=[high])) is not None
    far = Pod.from_json(pod("high", labels=APP, namespace="far"))
    assert plugin.filter(cluster.nodes["b1"].changed(added=[far])) is None


def test_evicting_pods_of_a_fuller_domain_does_not_change_the_least() -> None:
    """The least stays that of the other domain until the own one is emptier."""
    objects = [*ZONES, *(pod(f"x{number}", "a1", APP) for number in range(3)), pod("y", "b1", APP)]
    cluster = state(objects)
    plugin = asked(PodTopologySpread, pod("p", labels=APP, topologySpreadConstraints=[spread()]), cluster)
    node_a1 = cluster.nodes["a1"]
    assert plugin.filter(node_a1.changed(removed=node_a1.pods[:1])) is not None
    assert plugin.filter(node_a1.changed(removed=node_a1.pods[:2])) is None


def test_an_ending_pod_is_taken_off_although_it_was_not_counted() -> None:
    """As the scheduler does: with it gone the domain seems to have fewer pods than none."""
    ending = pod("e", "a1", APP, ending=True)
    cluster = state([*ZONES, ending, pod("x", "a1", APP), pod("y", "a1", APP), pod("z", "b1", APP)])
    raw = pod("p", labels=APP, topologySpreadConstraints=[spread()])
    plugin = asked(PodTopologySpread, raw, cluster)
    node_a1 = cluster.nodes["a1"]
    assert plugin.filter(node_a1) is not None
    gone = [entry for entry in node_a1.pods if entry.metadata.name == "e"]
    assert plugin.filter(node_a1.changed(removed=gone)) is None


def test_a_selector_that_cannot_be_parsed_counts_no_pods() -> None:
    bad: JSON = {"matchExpressions": [{"key": "app", "operator": "Bogus", "values": ["x"]}]}
    assert told([*ZONES, pod("x", "a1", APP)], spread(labelSelector=bad)) == {}
