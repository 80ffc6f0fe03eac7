"""Every way of asking ``explain``, as JSON: it fits the schema, and its parts agree with each other."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kubectl_dra.cel import cel_python
from tests.ran import ran
from tools.api_server import APIServer, forbidden
from tools.cases import CASES, run_case
from tools.examples import ROOT, arguments, examples
from tools.live.proved import device_path, lands_on

SCHEMA = jsonschema.Draft202012Validator(json.loads((ROOT / "schemas" / "explain.json").read_text()))
EXAMPLES = examples()
each = pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])
JSON = dict[str, Any]


def asked(*words: str) -> tuple[int, JSON]:
    """Exit code and answer of a command, which fits the schema."""
    code, out, errors = ran(*words, "-o", "json")
    assert errors == ""
    found: JSON = json.loads(out)
    SCHEMA.validate(found)
    return code, found


def funnels(found: JSON) -> Iterator[JSON]:
    for claim in found["claims"]:
        yield from claim.get("funnels", ())


def snapshot_of(example: Path) -> str:
    return str(next(path for path in example.iterdir() if path.name in ("cluster.yaml", "cluster.json")))


@each
def test_devices_agree_with_the_funnel(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each published device is listed once, under the stage that refused it or as usable."""
    monkeypatch.chdir(example)
    _, plain = asked(*arguments(example))
    assert not any("devices" in funnel for funnel in funnels(plain))
    _, found = asked(*arguments(example), "--devices")
    for funnel in funnels(found):
        listed = funnel["devices"]
        first, last = funnel["stages"][0], funnel["stages"][-1]
        assert len({device_path(line) for line in listed}) == len(listed) == first["passed"]
        refused = Counter(line["stage"] for line in listed)
        failed: Counter[str] = Counter()
        for stage in funnel["stages"][1:]:
            failed[stage["name"]] += stage["failed"]
        assert refused.pop("usable", 0) == last["passed"]
        assert refused == +failed
        assert all(line["reason"] for line in listed if line["stage"] != "usable")


@each
def test_traces_agree_with_the_funnel(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole selector has the value of its first step, and no selector is true where the device failed in it."""
    monkeypatch.chdir(example)
    _, found = asked(*arguments(example), "--devices")
    lines = [line for funnel in funnels(found) for line in funnel.get("devices", ())]
    by_stage = {line["stage"]: line for line in lines}
    for stage, line in by_stage.items():
        _, traced = asked(*arguments(example), "--trace", device_path(line))
        assert traced["traces"]
        for trace in traced["traces"]:
            whole = trace["steps"][0]
            assert device_path(trace) == device_path(line)
            assert whole["depth"] == 0
            assert whole["text"] == trace["expression"]
            assert trace["result"].startswith("error") if whole["raised"] else whole["value"] == trace["result"]
        if stage in ("class-selector", "request-selector"):
            assert {trace["result"] for trace in traced["traces"]} != {"true"}


@each
def test_everything_that_is_pending(example: Path) -> None:
    """Each subject is named once; the exit code is that of the worst answer; --devices has no say."""
    code, found = asked("explain", "-A", "--snapshot", snapshot_of(example))
    named = [name for item in found["items"] for name in item.get("standsFor", ())]
    assert len(named) == len(set(named))
    codes = [item["exitCode"] for item in found["items"]]
    assert code == (1 if 1 in codes else max(codes, default=0))
    for item in found["items"]:
        subject = item["subject"]
        alone, single = asked(
            "explain",
            f"{subject['kind']}/{subject['name']}",
            "-n",
            subject["namespace"],
            "--snapshot",
            snapshot_of(example),
        )
        assert (alone, single["verdict"]) == (item["exitCode"], item["verdict"])
        assert [cause["code"] for cause in single["causes"]] == [cause["code"] for cause in item["causes"]]


@each
def test_ways_out_say_what_to_change_and_where_it_fits(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(example)
    _, found = asked(*arguments(example))
    nodes = {name for group in found["nodeGroups"] for name in group["nodes"]}
    for way in found.get("fixes", ()):
        assert lands_on(way["proof"]) in nodes | {"the new node"}
        for change in way.get("whatIf", ()):
            _, supposed = asked(*arguments(example), "--what-if", change)
            assert f"supposed: {change}" in supposed["notes"]


def test_verify_reports_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other engine says is compared, not only counted."""
    example = ROOT / "examples" / "explain" / "no-device-matches"
    monkeypatch.chdir(example)
    code, found = asked(*arguments(example), "--verify")
    opinion = found["secondOpinion"]
    assert opinion["agree"] > 0
    assert opinion["differ"] == []
    monkeypatch.setattr(cel_python._Judge, "answer", lambda judge, device: (False, ""))
    changed_code, changed = asked(*arguments(example), "--verify")
    assert changed["secondOpinion"]["agree"] < opinion["agree"]
    assert "cel-python" in changed["secondOpinion"]["differ"][0]
    assert (changed_code, changed["verdict"]) == (code, found["verdict"])


RESOURCES = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "devicetaintrules")
CORE = {"Pod": "pods", "Node": "nodes", "Namespace": "namespaces", "Event": "events", "ResourceQuota": "resourcequotas"}


@pytest.mark.parametrize("denied", ["resourceslices", "deviceclasses", "nodes", "resourceclaims"])
def test_what_may_not_be_read(denied: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A list that is forbidden makes the answer undetermined where it decides, and is named in any case."""
    monkeypatch.setenv("HOME", str(tmp_path))
    items = json.loads(json.dumps(_objects("gaudi-too-few")))
    server = APIServer()
    try:
        server.serve_group(v1=RESOURCES)
        server.routes["/version"] = {"gitVersion": "v1.36.2"}
        for plural in (*RESOURCES, *CORE.values()):
            core = plural in CORE.values()
            kept = [item for item in items if _plural(item["kind"]) == plural]
            root = "/api/v1" if core else "/apis/resource.k8s.io/v1"
            server.routes[f"{root}/{plural}"] = forbidden(plural) if plural == denied else kept
            namespaced = [item for item in kept if item["metadata"].get("namespace") == "ml"]
            where = f"{root}/namespaces/ml/{plural}"
            server.routes[where] = forbidden(plural) if plural == denied else namespaced
            for item in namespaced:
                server.routes[f"{where}/{item['metadata']['name']}"] = item
        code, found = asked("explain", "pod/llama-hpu-0", "-n", "ml", "--kubeconfig", server.kubeconfig(tmp_path))
    finally:
        server.close()
    said = " ".join((found["answer"], *found["notes"]))
    assert denied[:-1].lower() in said.lower() and "forbidden" in said.lower()
    if denied in ("resourceslices", "deviceclasses"):
        assert (code, found["verdict"], found["causes"]) == (3, "undetermined", [])


def _objects(example: str) -> list[JSON]:
    import yaml

    text = (ROOT / "examples" / "explain" / example / "cluster.yaml").read_text()
    loaded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    items: list[JSON] = loaded["items"]
    return items


def _plural(kind: str) -> str:
    return CORE.get(kind, f"{kind.lower()}{'es' if kind.endswith('s') else 's'}")


def test_no_fact_repeats_the_answer(tmp_path: Path) -> None:
    case = next(found for found in CASES if found.file == "feature-disabled" and found.name == "a prioritized list")
    for full in (False, True):
        _, said = run_case(case, tmp_path, "text", full=full)
        above = " ".join(said.partition("Fix")[0].split())
        assert above.count("but the DRAPrioritizedList feature is disabled") == 1
