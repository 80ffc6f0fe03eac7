"""What ``fit`` says of several workloads, of parts of one, and of what does not decide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fit.test_agrees import quota
from tests.fit.worlds import JSON, bare, deployment, fitted, item, node, pod_spec, said, tainted, template, told
from tests.ran import unwrapped


def test_what_comes_first_takes_the_room_of_the_next(tmp_path: Path) -> None:
    cluster = [*node("a", 4), *node("b", 4), template(1), template(4)]
    small, big = deployment(2, "small"), deployment(1, "big", gpus=4)
    _, out, _ = said(tmp_path, cluster, [small, big])
    assert "Apply it before the others of the manifest: then all of it fits, and all of them." in unwrapped(out)
    code, _, _ = said(tmp_path, cluster, [big, small])
    assert code == 0
    # Where no more fit then, the order decides only who does.
    _, out, _ = said(tmp_path, [*node("a", 4), template(1)], [deployment(4, "one"), deployment(2, "two")])
    assert "Apply it before" not in out


def test_how_many_fit_with_the_fix_is_always_said(tmp_path: Path) -> None:
    cluster = [*node("a", 4), *tainted("b", 2), template(1)]
    _, out, _ = said(tmp_path, cluster, [deployment(6)], "--max")
    assert "with that in the template 6 replicas fit at most" in unwrapped(out)
    _, out, _ = said(tmp_path, cluster, [deployment(5, "a"), deployment(3, "b")])
    assert "with that in the template all 5 replicas fit" in unwrapped(out)
    assert "with that in the template 2 of 3 replicas fit" in unwrapped(out)
    _, out, _ = said(tmp_path, cluster, [deployment(6)], "--with-node", "b,count=1")
    assert "with that in the template all 6 replicas fit" in unwrapped(out)
    spec = {"parallelism": 6, "template": {"spec": {**pod_spec(1), "restartPolicy": "Never"}}}
    jobs: JSON = {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2"}
    jobs |= {"metadata": {"name": "w", "namespace": "default"}}
    jobs["spec"] = {"replicatedJobs": [{"name": "main", "template": {"spec": spec}}]}
    _, out, _ = said(tmp_path, cluster, [jobs])
    assert "with that in the template it fits, all 6 pods" in unwrapped(out)
    _, out, _ = said(tmp_path, cluster, [jobs], "--max")
    assert "1 more replica fits" in unwrapped(out) and "more pods" not in out


def test_the_mildest_way_is_named_where_the_cause_has_no_fix(tmp_path: Path) -> None:
    """Of a prioritized list no alternative has room, and the pod may tolerate the taint."""
    either = template(1)
    exactly = either["spec"]["spec"]["devices"]["requests"][0].pop("exactly")
    choices = [{"name": "two", **exactly, "count": 2}, {"name": "one", **exactly}]
    either["spec"]["spec"]["devices"]["requests"][0]["firstAvailable"] = choices
    _, out, _ = said(tmp_path, [*node("a", 2), *tainted("b", 2), either], [deployment(2)])
    assert re.search(r"Fix: Let the pod tolerate .*; with that in the template both replicas fit", unwrapped(out))


def test_a_quota_says_what_the_cluster_uses(tmp_path: Path) -> None:
    _, out, _ = said(tmp_path, [*node("a", 8), quota(4, 0), template(1)], [deployment(6)])
    assert ": 0 used, 4 needed before by the manifest, 1 more needed Fix: Raise the quota. " in unwrapped(out)
    _, out, _ = said(tmp_path, [*node("a", 8), quota(4, 3), template(1)], [deployment(6)])
    assert ": 3 used, 1 needed before by the manifest, 1 more needed Fix: Raise the quota, or delete" in unwrapped(out)


def test_what_was_not_read_is_said_once(tmp_path: Path) -> None:
    code, out, _ = said(tmp_path, [template(1)], [deployment(3)], unseen=("ResourceSlice", "Node", "Service"))
    assert code == 3 and out.count("undetermined") == 1 and "do not fit" not in out


@pytest.mark.parametrize("flags", [(), ("-o", "json")])
def test_no_replica_is_no_replica_that_fits(tmp_path: Path, flags: tuple[str, ...]) -> None:
    code, out, _ = said(tmp_path, [*node("a", 1), template(1)], [deployment(0)], *flags)
    assert code == 0 and "Deployment default/web makes no pod: it has 0 replicas." in out


def test_a_number_that_is_none(tmp_path: Path) -> None:
    _, _, errors = said(tmp_path, node("a", 1), [deployment(1)], "--replicas=two")
    assert "'two' is not a whole number" in errors


def test_a_yes_that_chance_may_take_back_is_none(tmp_path: Path) -> None:
    """Three pods, of which the first may take the node that only the last one can use."""
    near = {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    cluster = [*node("a", 2), *node("b", 2), template(1), template(2)]
    _, report = fitted(tmp_path, cluster, [deployment(2, "b", affinity=together), deployment(1, "c", gpus=2)])
    for each in report["items"]:
        counts = each["podCounts"]
        assert (each["verdict"] == "can-be-scheduled") is (counts["fewest"] == counts["wanted"]), each["answer"]


def test_claims_with_requests_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Each pod has two claims, with a request of the same name: the holders are pods, each named once."""
    web = deployment(3)
    spec = web["spec"]["template"]["spec"]
    spec["resourceClaims"].append({"name": "more", "resourceClaimTemplateName": "gpu-2"})
    spec["containers"][0]["resources"]["claims"].append({"name": "more"})
    cluster = [*node("a", 4), *node("b", 4), template(1), template(2)]
    text = told(tmp_path, cluster, [web])
    assert 'request "gpu" of claim default/web-2-more needs 2 on one node' in text
    assert "(pod default/web-0 holds the 3 others)" in text
    # As they are written, one of the two does not fit alone.
    assert "requests-compete: with count 1 there, request" in text


def test_where_workloads_compete_their_order_is_said_to_be_assumed(tmp_path: Path) -> None:
    cluster = [*node("a", 4), *node("b", 4), template(1), template(2)]
    five, pairs = deployment(5), {**deployment(2, "train", gpus=2), "kind": "StatefulSet"}
    _, out, _ = said(tmp_path, cluster, [five, pairs])
    said_of_order = "The order of the manifest was assumed, and decides: with this one first"
    assert f"{said_of_order} 2 of 2 pods of StatefulSet default/train and 4 of 5 pods of Deployment" in unwrapped(out)
    _, out, _ = said(tmp_path, cluster, [pairs, five])
    assert f"{said_of_order} 5 of 5 pods of Deployment default/web and 1 of 2 pods of StatefulSet" in unwrapped(out)
    # The one of higher priority comes first in any order.
    five["spec"]["template"]["spec"]["priority"] = 7
    _, out, _ = said(tmp_path, cluster, [pairs, five])
    assert said_of_order not in unwrapped(out)


@pytest.mark.parametrize(("cpu", "replicas", "expected"), [("1", 20, "800m"), ("6", 4, "4"), ("1", 200, "")])
def test_the_request_with_which_all_fit(tmp_path: Path, cpu: str, replicas: int, expected: str) -> None:
    """The largest one as people would write it; no request is worth naming that is a small part of the written one."""
    cluster = [*node("a", cpu="8", pods="300"), *node("b", cpu="8", pods="300")]
    found = item(tmp_path, cluster, [deployment(replicas, gpus=0, cpu=cpu)])
    fix = found["stop"]["fix"]
    if expected:
        assert f"Lower cpu from {cpu} to {expected} in" in fix["text"] and fix["fitting"] == replicas
        assert item(tmp_path, cluster, [deployment(replicas, gpus=0, cpu=expected)])["verdict"] == "can-be-scheduled"
    else:
        assert fix["fitting"] < replicas


@pytest.mark.parametrize(("replicas", "expected"), [(4, 3), (6, 1)])
def test_what_was_not_read_makes_no_room(tmp_path: Path, replicas: int, expected: int) -> None:
    """Four devices are not enough for six pods, whatever other pods there are."""
    code, out, _ = said(tmp_path, [*node("a", 4), template(1)], [deployment(replicas)], unseen=["Pod", "ResourceClaim"])
    assert code == expected, out
    assert unwrapped(out).startswith("At most 4 of 6 replicas of Deployment default/web fit: ") is (expected == 1)


def test_advice_to_add_a_node_stands_once(tmp_path: Path) -> None:
    """What makes room says so, with what it brings; other advice beside it stays, without a half sentence about it."""
    cluster = [*node("a", 2), template(1)]
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    _, out, _ = said(tmp_path, cluster, [deployment(2, affinity=rule)])
    assert "Fix: Add a node, run fewer such pods, or correct the anti-affinity. What makes room" in unwrapped(out)
    assert "then it fits on the new node" not in unwrapped(out)
    assert "1 more replica fits, and so both." in unwrapped(out)


def test_copies_of_several_pods_are_called_so(tmp_path: Path) -> None:
    pods = [bare("p1", 1), bare("p2", 2)]
    _, out, _ = said(tmp_path, [*node("a", 4), template(1), template(2)], pods, "--replicas", "2")
    assert unwrapped(out).startswith("1 of 2 copies of the 2 Pods of default fits (3 of 4 pods).")


def test_one_empty_line_before_the_explanation(tmp_path: Path) -> None:
    for replicas in (3, 9):
        _, out, _ = said(tmp_path, [*node("a", 2), template(1)], [deployment(replicas)], "--explain")
        assert "\n\n\n" not in out and "\n\nA pod of Deployment" in out
