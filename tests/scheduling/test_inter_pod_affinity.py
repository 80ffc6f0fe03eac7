"""InterPodAffinity: required terms of the pod and of pods that are there."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.inter_pod_affinity import AffinityNotMet, AntiAffinityBroken, InterPodAffinity
from tools.scheduling.small_clusters import HOSTNAME, JSON, ZONE, asked, namespace, node, pod, refused, state

NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
NODES = [node("a1", "z1"), node("a2", "z1"), node("b1", "z2")]
WEB = {"app": "web"}


def term(key: str = ZONE, app: str = "web", **fields: Any) -> JSON:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


def near(*terms: JSON) -> JSON:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def far(*terms: JSON) -> JSON:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def told(spec: JSON, *objects: JSON, labels: dict[str, str] | None = None, **options: Any) -> dict[str, str]:
    return refused(InterPodAffinity, pod("p", labels=labels, **spec), state([*NODES, *objects], **options))


def test_a_pod_that_nothing_concerns_is_not_looked_at() -> None:
    assert asked(InterPodAffinity, pod("p"), state([*NODES, pod("x", "a1", WEB)])).skipped


def test_affinity_holds_in_the_domain_of_such_a_pod() -> None:
    assert told(near(term()), pod("x", "a1", WEB)) == {"b1": NEAR}
    assert told(near(term(HOSTNAME)), pod("x", "a1", WEB)) == {"a2": NEAR, "b1": NEAR}


def test_affinity_that_nobody_meets_holds_nowhere() -> None:
    assert set(told(near(term()), pod("x", "a1", {"app": "db"}))) == {"a1", "a2", "b1"}


def test_affinity_is_not_resolved_by_eviction_and_anti_affinity_is() -> None:
    cluster = state([*NODES, pod("x", "a1", WEB)])
    unmet = asked(InterPodAffinity, pod("p", **near(term())), cluster).filter(cluster.nodes["b1"])
    assert unmet is not None and not unmet.resolvable and unmet.reasons == (AffinityNotMet(ZONE, "z2"),)
    plugin = asked(InterPodAffinity, pod("p", **far(term())), cluster)
    broken = plugin.filter(cluster.nodes["a2"])
    assert broken is not None and broken.resolvable and broken.reasons == (AntiAffinityBroken(ZONE, "z1"),)
    node_a1 = cluster.nodes["a1"]
    assert plugin.filter(node_a1.changed(removed=node_a1.pods)) is None


def test_one_pod_must_meet_all_affinity_terms() -> None:
    terms = near(term(), {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "gold"}}})
    assert set(told(terms, pod("x", "a1", WEB), pod("y", "a1", {"tier": "gold"}))) == {"a1", "a2", "b1"}
    assert told(terms, pod("x", "a1", {**WEB, "tier": "gold"})) == {"b1": NEAR}


def test_a_node_without_the_label_meets_no_affinity_and_breaks_no_anti_affinity() -> None:
    objects = [node("c"), pod("x", "a1", WEB)]
    assert told(near(term()), *objects) == {"b1": NEAR, "c": NEAR}
    assert told(far(term()), *objects, pod("y", "c", WEB)) == {"a1": FAR, "a2": FAR}


def test_the_first_pod_of_a_group_goes_anywhere_with_the_label() -> None:
    assert told(near(term()), node("c"), labels=WEB) == {"c": NEAR}
    assert set(told(near(term()), labels={"app": "db"})) == {"a1", "a2", "b1"}
    # One pod of the group is somewhere: it is no longer the first.
    assert told(near(term()), pod("x", "b1", WEB), labels=WEB) == {"a1": NEAR, "a2": NEAR}


def test_a_pod_on_a_node_without_the_label_leaves_the_group_without_a_first() -> None:
    """Such a pod is in no domain, so that the group has none yet."""
    assert told(near(term()), node("c"), pod("x", "c", WEB), labels=WEB) == {"c": NEAR}


def test_anti_affinity_keeps_off_each_term() -> None:
    objects = [pod("x", "a1", WEB), pod("y", "b1", {"app": "db"})]
    assert told(far(term(HOSTNAME), term(HOSTNAME, "db")), *objects) == {"a1": FAR, "b1": FAR}


def test_existing_pods_keep_the_pod_off() -> None:
    objects = [pod("x", "a1", {"app": "db"}, **far(term()))]
    assert told({}, *objects, labels=WEB) == {"a1": EXISTING, "a2": EXISTING}
    assert told({}, *objects, labels={"app": "db"}) == {}


def test_affinity_is_told_before_anti_affinity_and_that_before_existing_pods() -> None:
    existing = pod("x", "a1", WEB, **far(term()))
    assert told(
        {"affinity": {**near(term(app="none"))["affinity"], **far(term())["affinity"]}}, existing, labels=WEB
    ) == dict.fromkeys(("a1", "a2", "b1"), NEAR)
    assert told(far(term()), existing, labels=WEB) == {"a1": FAR, "a2": FAR}


def test_a_term_is_about_the_pods_own_namespace() -> None:
    other = pod("x", "a1", WEB, "far")
    assert told(far(term()), other) == {}
    assert set(told(far(term(namespaces=["far"])), other)) == {"a1", "a2"}
    assert told(far(term(namespaces=["far"])), pod("x", "a1", WEB)) == {}


def test_a_namespace_selector_adds_to_named_namespaces() -> None:
    objects = [namespace("far", team="x"), namespace("else", team="y"), pod("x", "a1", WEB, "far")]
    chosen = {"matchLabels": {"team": "x"}}
    assert set(told(far(term(namespaceSelector=chosen)), *objects)) == {"a1", "a2"}
    assert set(told(far(term(namespaceSelector=chosen, namespaces=["else"])), *objects)) == {"a1", "a2"}
    assert told(far(term(namespaceSelector={"matchLabels": {"team": "y"}})), *objects) == {}
    # A selector alone leaves the pod's own namespace out, unless it matches.
    assert told(far(term(namespaceSelector=chosen)), namespace("far", team="x"), pod("x", "a1", WEB)) == {}


def test_an_empty_namespace_selector_is_every_namespace() -> None:
    assert set(told(far(term(namespaceSelector={})), pod("x", "a1", WEB, "far"))) == {"a1", "a2"}


@pytest.mark.parametrize(("release", "everywhere"), [("1.36", True), ("1.37", False)])
def test_a_selector_that_excludes_means_every_namespace_before_1_37(release: str, everywhere: bool) -> None:
    excluding = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
    objects = [namespace("far", team="x"), pod("x", "a1", WEB, "far")]
    found = told(far(term(namespaceSelector=excluding)), *objects, release=release)
    assert set(found) == ({"a1", "a2"} if everywhere else set())


def test_namespaces_of_existing_pods_terms() -> None:
    chosen = far(term(namespaceSelector={"matchLabels": {"team": "x"}}))
    existing = pod("x", "a1", {"app": "db"}, "far", **chosen)
    raw = pod("p", labels=WEB, namespace="own")
    for labels, expected in (({"team": "x"}, {"a1", "a2"}), ({"team": "y"}, set())):
        cluster = state([*NODES, namespace("own", **labels), existing])
        assert set(refused(InterPodAffinity, raw, cluster)) == expected


def test_a_term_without_selector_is_about_no_pod() -> None:
    assert told(far({"topologyKey": ZONE}), pod("x", "a1", WEB)) == {}
    assert set(told(near({"topologyKey": ZONE}), pod("x", "a1", WEB))) == {"a1", "a2", "b1"}


def test_an_empty_selector_is_about_every_pod() -> None:
    assert set(told(far({"topologyKey": ZONE, "labelSelector": {}}), pod("x", "a1"))) == {"a1", "a2"}


def test_pods_that_are_ending_count_still() -> None:
    assert set(told(far(term()), pod("x", "a1", WEB, ending=True))) == {"a1", "a2"}


def test_nominated_pods_count_on_their_node_and_not_as_neighbours_elsewhere() -> None:
    cluster = state(NODES)
    high = Pod.from_json(pod("high", labels=WEB))
    plugin = asked(InterPodAffinity, pod("p", **far(term())), cluster)
    assert plugin.filter(cluster.nodes["a1"].changed(added=[high])) is not None
    assert plugin.filter(cluster.nodes["b1"]) is None


def test_evicting_the_last_of_a_group_makes_the_pod_its_first() -> None:
    cluster = state([*NODES, pod("x", "b1", WEB)])
    plugin = asked(InterPodAffinity, pod("p", labels=WEB, **near(term())), cluster)
    node_b1 = cluster.nodes["b1"]
    assert plugin.filter(node_b1.changed(removed=node_b1.pods)) is None


def test_evicting_pods_lifts_their_anti_affinity() -> None:
    cluster = state([*NODES, pod("x", "a1", **far(term())), pod("y", "a2", **far(term()))])
    plugin = asked(InterPodAffinity, pod("p", labels=WEB), cluster)
    node_a1 = cluster.nodes["a1"]
    assert plugin.filter(node_a1.changed(removed=node_a1.pods)) is not None
    cluster = state([*NODES, pod("x", "a1", **far(term()))])
    plugin = asked(InterPodAffinity, pod("p", labels=WEB), cluster)
    assert plugin.filter(cluster.nodes["a1"].changed(removed=cluster.nodes["a1"].pods)) is None


def test_a_term_that_cannot_be_parsed_is_about_no_pod() -> None:
    bad: JSON = {"matchExpressions": [{"key": "app", "operator": "Bogus", "values": ["x"]}]}
    other = pod("x", "a1", **far(term(labelSelector=bad), term(namespaceSelector=bad)))
    assert told({}, namespace("default"), other, labels=WEB) == {}
    assert told({}, namespace("default"), pod("y", "a1", **far(term())), other, labels=WEB) == {
        "a1": EXISTING,
        "a2": EXISTING,
    }
    assert told(far(term(labelSelector=bad)), pod("x", "a1", WEB)) == {}
