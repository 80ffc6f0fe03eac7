"""The metrics say what the commands say: the causes of explain -A, the states of devices, claims and drivers."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kubectl_dra.drivers.health import DriverState
from tests.cli.conftest import Ran

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "explain"
CLUSTERS = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir() and any(path.glob("cluster.*")))
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
Dra = Callable[..., Ran]


def saved(example: str) -> str:
    return str(next((EXAMPLES / example).glob("cluster.*")))


def counted(text: str, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    """The samples of a metric, summed by some of its labels, without zeros."""
    found: Counter[tuple[str, ...]] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"kubectl_dra_{name}":
                found[tuple(sample.labels[label] for label in labels)] += int(sample.value)
    return +found


def pending(text: str) -> Counter[tuple[str, ...]]:
    """What waits by the metrics: namespace, cause and verdict."""
    labels = ("namespace", "cause", "verdict")
    return counted(text, "pending_pods", *labels) + counted(text, "pending_claims", *labels)


def explained(overview: str) -> Counter[tuple[str, ...]]:
    """What waits by ``explain -A -o json``."""
    found: Counter[tuple[str, ...]] = Counter()
    for told in json.loads(overview)["items"]:
        cause = told["causes"][0]["code"] if told["causes"] else "none"
        found[told["subject"]["namespace"], cause, told["verdict"]] += len(told["standsFor"])
    return found


@pytest.mark.parametrize("example", CLUSTERS)
def test_same_as_the_commands(dra: Dra, example: str) -> None:
    cluster = saved(example)
    ran = dra("metrics", "--snapshot", cluster)
    assert ran.code in (0, 3)
    assert pending(ran.out) == explained(dra("explain", "-A", "--snapshot", cluster, "-o", "json").out)
    states: Counter[tuple[str, ...]] = Counter()
    for device in json.loads(dra("devices", "--snapshot", cluster, "-o", "json").out)["items"]:
        states[device["driver"], device["state"]] += 1
    told_states = counted(ran.out, "devices", "driver", "state")
    assert Counter({key: value for key, value in told_states.items() if key[1] != "unpublished"}) == states
    claims: Counter[tuple[str, ...]] = Counter()
    for claim in json.loads(dra("claims", "--snapshot", cluster, "-o", "json").out)["items"]:
        claims[claim["namespace"], claim["state"]] += 1
    assert counted(ran.out, "claims", "namespace", "state") == claims
    used: dict[str, Counter[tuple[str, ...]]] = {"deviceCount": Counter(), "idle": Counter()}
    for row in json.loads(dra("top", "namespaces", "--snapshot", cluster, "-o", "json").out)["items"]:
        for field, numbers in used.items():
            numbers[(row["namespace"],)] += row[field]
    assert counted(ran.out, "namespace_devices_held", "namespace") == +used["deviceCount"]
    assert counted(ran.out, "namespace_devices_idle", "namespace") == +used["idle"]


def test_what_is_known_in_advance_is_there_as_zero(dra: Dra) -> None:
    """Else a series comes with its first event, on which it is hard to alert."""
    text = dra("metrics", "--snapshot", saved("no-device-matches")).out
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]

    def of(name: str, label: str) -> dict[str, set[float]]:
        found: dict[str, set[float]] = {}
        for sample in samples:
            if sample.name == f"kubectl_dra_{name}":
                found.setdefault(sample.labels[label], set()).add(sample.value)
        return found

    assert of("driver_nodes", "state").keys() == {state.value for state in DriverState}
    assert of("driver_nodes", "state")["crashing"] == {0}
    assert of("unhealthy_devices", "driver") == {"gpu.nvidia.com": {0}}
    assert of("pods_to_evict", "namespace") == {"ml": {0}, "research": {0}}
    assert of("pending_pods", "namespace") == {"ml": {0, 1}, "research": {0}}
    assert of("pending_claims", "namespace") == {"ml": {0}, "research": {0}}
    # A series for the oldest of none would be that of 1970.
    assert of("pending_pods_oldest_timestamp_seconds", "namespace").keys() == {"ml"}


def test_every_class_has_a_number_to_alert_on(dra: Dra) -> None:
    """A class without devices has 0, and one whose devices are shared what is left of their capacity."""
    text = dra("metrics", "--snapshot", saved("all-held")).out
    for name in ("mig.nvidia.com", "vfio.gpu.nvidia.com"):
        assert f'kubectl_dra_device_class_largest_request{{device_class="{name}"}} 0.0' in text.splitlines()
    text = dra("metrics", "--snapshot", saved("shared-capacity-fits")).out
    for name, value in (("", 256), ("_remaining", 72), ("_largest_request", 24)):
        assert counted(text, f"device_class_capacity{name}", "device_class", "capacity") == {
            ("dra.cpu", "dra.cpu/cpu"): value
        }


def test_the_page_lists_every_metric(dra: Dra) -> None:
    text = dra("metrics", "--snapshot", saved("mixed-fleet")).out
    names = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert names and not {name for name in names if f"`{name}`" not in PAGE}


def test_promtool_reads_them(dra: Dra) -> None:
    from tests.packaging import toolbox

    try:
        promtool = toolbox.promtool()
    except toolbox.Unavailable as reason:
        pytest.skip(str(reason))
    for example in ("mixed-fleet", "all-held", "all-tainted"):
        text = dra("metrics", "--snapshot", saved(example)).out
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_classes_without_devices_and_classes_without_a_free_one(dra: Dra) -> None:
    text = dra("metrics", "--snapshot", saved("mixed-fleet")).out
    free = 'kubectl_dra_device_class_devices{device_class="%s",driver="%s",node_pool="",state="free"} 0.0'
    assert free % ("mig.nvidia.com", "") in text
    assert free % ("gpu.amd.com-spx", "gpu.amd.com") in text
    assert 'kubectl_dra_device_class_fitting_pods{device_class="gpu.intel.com",devices="2"} 1.0' in text
    # Partitions take from each other: how many fit is not a matter of numbers.
    assert 'fitting_pods{device_class="gpu.amd.com"' not in text


def test_what_was_not_read_is_missing(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "nodes.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    ran = dra("metrics", "--snapshot", "nodes.yaml")
    assert ran.code == 3
    assert 'kubectl_dra_unread{kind="Pod",reason="absent"} 1.0' in ran.out
    assert "kubectl_dra_claims{" not in ran.out and "kubectl_dra_pending_pods{" not in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--listen", "9412"), "did you mean :9412?"),
        (("--listen", ":99999"), "is not [HOST]:PORT"),
        (("--listen", "::1:80"), "is not [HOST]:PORT"),
        (("--listen", ":http"), "is not [HOST]:PORT"),
        (("--listen", ":1", "--snapshot", "x.yaml"), "--listen watches a live cluster"),
        (("--kubernetes-version", "1.2"), "--kubernetes-version"),
    ],
)
def test_wrong_usage(dra: Dra, words: tuple[str, ...], said: str) -> None:
    ran = dra("metrics", *words)
    assert ran.code == 2 and said in ran.err


def test_node_pools(dra: Dra, tmp_path: Path) -> None:
    text = Path(saved("mixed-fleet")).read_text()
    text = text.replace("hostname: gaudi-1\n", "hostname: gaudi-1\n      pool: big\n", 1)
    (tmp_path / "fleet.yaml").write_text(text)
    out = dra("metrics", "--snapshot", "fleet.yaml", "--node-pool-label", "pool").out
    assert counted(out, "devices", "node_pool")[("big",)] == 8
