"""Each alert of ``kubectl dra metrics`` fires on what the command tells of the situation that it is for.

What the command prints is what promtool takes for the series; the clock begins when the cluster was read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from kubectl_dra.cli.flags import MetricsFlags
from kubectl_dra.cli.metrics import Counting
from kubectl_dra.cluster import watch
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.follow import FollowedCluster
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import KINDS
from kubectl_dra.metrics.exposition import FleetKeeper
from kubectl_dra.metrics.fleet import NODE_POOL_LABELS
from tests.cli.conftest import Ran
from tests.cli.conftest import dra as dra
from tests.cli.test_devices import DRIVER, NO_CLAIMS, NO_RULES, device_class, gpu, held, node, slice_of
from tests.metrics.test_follow import until
from tests.monitoring.files import FOLDER, ROOT, RULE, alerts
from tests.monitoring.test_promtool import Case, rule_test, run
from tests.monitoring.test_promtool import promtool as promtool
from tools.watched_server import WatchedServer, collection

Dra = Callable[..., Ran]
Json = dict[str, Any]
GROUP = "dra-fleet"
SELECTS = f'device.driver == "{DRIVER}"'
RESULT = {"pool": "n1", "device": "gpu-0"}
CREATED = "2026-11-01T00:00:00Z"
FLEET = [
    {**node("n1"), "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"pods": "10"}}},
    device_class("gpu", SELECTS),
    NO_RULES,
]


def pod(name: str, claim: str, **status: Any) -> Json:
    metadata = {"name": name, "namespace": "ml", "uid": name, "creationTimestamp": CREATED}
    spec: Json = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]}
    if status:
        spec["nodeName"] = "n1"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def wanting(name: str) -> Json:
    return {key: value for key, value in held(name).items() if key != "status"}


ONE = [*FLEET, slice_of("n1", [gpu("gpu-0"), gpu("gpu-1")])]
UNHEALTHY = {"name": "claim:gpu", "resources": [{"resourceID": f"{DRIVER}/gpu=gpu-0", "health": "Unhealthy"}]}
RULE_NO_EXECUTE = {
    "apiVersion": "resource.k8s.io/v1beta2",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "broken", "creationTimestamp": CREATED},
    "spec": {
        "deviceSelector": {"driver": DRIVER, "pool": "n1", "device": "gpu-0"},
        "taint": {"key": "broken", "effect": "NoExecute", "timeAdded": CREATED},
    },
}
USED = [held("used", RESULT, pods=("train",)), pod("train", "used", phase="Running")]
WAITS = [pod("waits", "wanted"), wanting("wanted")]
WELL = [*ONE, *USED, {"apiVersion": "v1", "kind": "EventList", "items": []}]
SITUATIONS: tuple[tuple[str, Sequence[Json] | Path, int, tuple[dict[str, str], ...]], ...] = (
    (
        "DRAPodsPending",
        ROOT / "examples" / "explain" / "mixed-fleet" / "cluster.yaml",
        40,
        ({"namespace": "ml", "cause": "selector-matches-nothing", "verdict": "cannot-be-scheduled"},),
    ),
    ("DRAPodsNotPlaced", [*ONE, *WAITS], 40, ({"namespace": "ml", "cause": "none", "verdict": "can-be-scheduled"},)),
    (
        "DRAClassExhausted",
        [*FLEET, slice_of("n1", [gpu("gpu-0")]), *USED],
        20,
        ({"device_class": "gpu"},),
    ),
    ("DRAClassEmpty", [*ONE, NO_CLAIMS, device_class("none", 'device.driver == "x"')], 40, ({"device_class": "none"},)),
    (
        "DRADriverBroken",
        ROOT / "docs" / "samples" / "drivers.yaml",
        20,
        tuple({"driver": DRIVER, "state": state} for state in ("crashing", "no-pod")),
    ),
    ("DRADevicesUnpublished", [*FLEET, slice_of("n2", [gpu("gpu-7")]), node("n2"), *USED], 20, ({"driver": DRIVER},)),
    (
        "DRADevicesUnhealthy",
        [
            *ONE,
            USED[0],
            pod(
                "train",
                "used",
                phase="Running",
                containerStatuses=[{"name": "main", "allocatedResourcesStatus": [UNHEALTHY]}],
            ),
        ],
        10,
        ({"driver": DRIVER},),
    ),
    ("DRADevicesIdle", [*ONE, held("left", RESULT)], 70, ({"namespace": "ml"},)),
    ("DRAEvictionPending", [*ONE, RULE_NO_EXECUTE, *USED], 20, ({"namespace": "ml"},)),
)


def series(text: str) -> dict[str, str]:
    """What a scrape tells, as promtool's series that stay as they are, from the time 0."""
    families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    (read,) = [sample.value for sample in samples if sample.name == "kubectl_dra_cluster_timestamp_seconds"]
    found: dict[str, str] = {}
    for sample in samples:
        value = sample.value - read if sample.name.endswith("_oldest_timestamp_seconds") else sample.value
        labels = ", ".join(f"{name}={json.dumps(label)}" for name, label in sample.labels.items())
        found[f"{sample.name}{{{labels}}}"] = f"{value:.0f}+0x90"
    return found


def checked(promtool: Path, folder: Path, cases: Sequence[Case]) -> None:
    spec = yaml.safe_load(RULE.read_text(encoding="utf-8"))["spec"]
    (folder / "rules.yaml").write_text(yaml.safe_dump(spec))
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [rule_test(case) for case in cases]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(tests))
    run(promtool, "test", "rules", folder / "tests.yaml")


def told(dra: Dra, folder: Path, cluster: Sequence[Json] | Path) -> str:
    path = cluster if isinstance(cluster, Path) else folder / "cluster.yaml"
    if not isinstance(cluster, Path):
        path.write_text(yaml.safe_dump_all(cluster))
    return dra("metrics", "--snapshot", str(path)).out


@pytest.mark.parametrize(("alert", "cluster", "minute", "fires"), SITUATIONS, ids=[each[0] for each in SITUATIONS])
def test_the_alert_fires(
    dra: Dra,
    promtool: Path,
    tmp_path: Path,
    alert: str,
    cluster: Sequence[Json] | Path,
    minute: int,
    fires: tuple[dict[str, str], ...],
) -> None:
    found = series(told(dra, tmp_path, cluster))
    silent = series(told(dra, tmp_path, WELL))
    value = next((text.partition("+")[0] for name, text in found.items() if _shown(alert, name, fires)), "")
    checked(promtool, tmp_path, [Case(alert, found, minute, fires, value), Case(alert, silent, minute)])


def _shown(alert: str, name: str, fires: tuple[dict[str, str], ...]) -> bool:
    """Whether it is the series whose value the alert's text shows."""
    rule = next(one for one in alerts() if one["alert"] == alert)
    metric = re.findall(r"kubectl_dra_\w+", rule["expr"])[0]
    states = re.findall(r'state="(\w+)"', rule["expr"])
    own = all(f'"{label}"' in name for label in fires[0].values()) and name.startswith(f"{metric}{{")
    return own and all(f'state="{state}"' in name for state in states)


def test_it_fires_where_something_may_not_be_read(dra: Dra, promtool: Path, tmp_path: Path) -> None:
    server = WatchedServer([each for each in ONE if "items" not in each])
    config = server.kubeconfig(tmp_path)
    whole = dra("metrics", "--kubeconfig", config)
    server.refused[collection("Pod")] = 403
    ran = dra("metrics", "--kubeconfig", config)
    server.close()
    assert (whole.code, ran.code) == (0, 3)
    labels = {"kind": "Pod", "reason": "forbidden"}
    alert = "DRAMetricsIncomplete"
    checked(promtool, tmp_path, [Case(alert, series(ran.out), 20, (labels,)), Case(alert, series(whole.out), 20)])


def test_it_fires_when_the_metrics_are_old(promtool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server goes away after three minutes and comes back after ten more, by the clock of who follows it."""
    monkeypatch.setattr(watch, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(watch, "_LONGEST_WAIT", 0.05)
    server = WatchedServer([each for each in ONE if "items" not in each])
    options = ConnectionOptions(kubeconfig=server.kubeconfig(tmp_path), request_timeout=5.0)
    now = [0.0]
    followed = FollowedCluster(lambda: ApiServer(options), lambda: now[0])
    counting = Counting(MetricsFlags(), NODE_POOL_LABELS)
    keeper = FleetKeeper(followed, counting, lambda sentence: None)

    def lag() -> float:
        families = {family.name: family for family in keeper.collect()}
        return families["kubectl_dra_lag_seconds"].samples[0].value

    def minutes(number: int) -> Iterator[str]:
        for _ in range(number):
            yield f"{lag():.0f}"
            now[0] += 60

    def count() -> bool:
        keeper.count()
        return keeper.ready

    followed.start(KINDS)
    until(lambda: followed.known and all(own.live for own in followed.counts()))
    until(count)
    until(lambda: not lag())
    lags = [*minutes(3)]
    server.close()
    until(lambda: not any(own.live for own in followed.counts()))
    lags += minutes(10)
    server.open()
    until(lambda: not lag())
    lags += minutes(3)
    followed.stop()
    server.close()
    told = {"kubectl_dra_lag_seconds": " ".join(lags)}
    alert = "DRAMetricsStale"
    fires = Case(alert, told, 12, ({},), "540")
    checked(promtool, tmp_path, [Case(alert, told, 2), Case(alert, told, 10), fires, Case(alert, told, 14)])


def test_every_alert_has_a_situation() -> None:
    groups = yaml.safe_load(RULE.read_text(encoding="utf-8"))["spec"]["groups"]
    names = {rule["alert"] for group in groups if group["name"] == GROUP for rule in group["rules"]}
    assert names == {each[0] for each in SITUATIONS} | {"DRAMetricsIncomplete", "DRAMetricsStale"}


def test_every_runbook_is_a_page() -> None:
    for alert in alerts():
        link = alert["annotations"].get("runbook_url", "")
        path = re.sub(r"^.*/blob/main/", "", link).replace("{{ $labels.cause }}", "selector-matches-nothing")
        assert not link or (ROOT / path).is_file(), alert["alert"]


def test_the_deployment_is_confined() -> None:
    found = list(yaml.safe_load_all((FOLDER / "kubectl-dra-metrics.yaml").read_text()))
    (deployment,) = (raw for raw in found if raw["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    (role,) = (raw for raw in found if raw["kind"] == "ClusterRole")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}
