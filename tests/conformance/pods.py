"""Compares what ``scheduling`` and ``explain`` say of whole pods with what a real scheduler did with them.

The cluster is as served, with the pod in it, created while the scheduler stood still; or the pod is a manifest that the
API server refused. ``--library`` asks ``scheduling`` alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import default_features, parse_release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.cluster.time_read import stamp
from kubectl_dra.scheduling.binding import winner
from kubectl_dra.scheduling.framework import ClusterState
from kubectl_dra.scheduling.gang_scheduling import kept_out
from kubectl_dra.scheduling.outcome import Outcome
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.scheduling.scheduler_config import read_config
from tests.ran import ran
from tools.recorder.recorded import lines

Case = dict[str, Any]

TAKEN_BACK = "deallocation of ResourceClaim completed"


def state_of(case: Case, folder: Path) -> tuple[ClusterState, Pod]:
    """The cluster of a case and the pod that is asked about."""
    path = folder / "snapshot.json"
    path.write_text(json.dumps(case["snapshot"]))
    snapshot: Snapshot = read_snapshot([str(path)], complete=True)
    release = parse_release(case["release"])
    gates = frozenset((*default_features(release), *case.get("gates", ())))
    namespace, _, name = case["pod"].partition("/")
    pod = snapshot.pods[namespace, name]
    config = _config(case, folder)
    read = read_config(str(config), release) if config is not None else None
    return Scheduler(release, gates, release.patch, read).sees(Cluster(snapshot), pod), pod


def _config(case: Case, folder: Path) -> Path | None:
    """The configuration of the scheduler that was asked, where it was not the default one."""
    if "schedulerConfig" not in case:
        return None
    path = folder / "scheduler.json"
    path.write_text(json.dumps(case["schedulerConfig"]))
    return path


def of_library(case: Case) -> str:
    """What ``scheduling`` says otherwise than the scheduler; empty where nothing."""
    with tempfile.TemporaryDirectory() as folder:
        state, pod = state_of(case, Path(folder))
    expect = case["expect"]
    kind = expect["outcome"]
    if kind == "preset":
        return "" if pod.node_name else "the pod has no node"
    if kind in ("gated", "ignored"):
        kept = pod.scheduler_name != "default-scheduler" or kept_out(pod, state) is not None
        return "" if kept else "the scheduler tries the pod"
    if (rejection := kept_out(pod, state)) is not None:
        return f"kept out of the queue: {[reason.words for reason in rejection.reasons]}"
    outcome = Outcome(pod, state)
    return placed(outcome, expect) if kind == "scheduled" else refused(outcome, expect)


def placed(outcome: Outcome, expect: Case) -> str:
    """What is different for a pod that the scheduler bound."""
    while outcome.next is not None:
        outcome = outcome.next
    node = expect["node"]
    if node not in outcome.feasible:
        return f"scheduled on {node}, offered {list(outcome.feasible)}: {outcome.message}"
    if node not in (best := winner(outcome)).nodes:
        return f"scheduled on {node}, ours would win: {list(best.nodes)}, {best.scores}"
    devices = outcome.chain.devices
    assert devices is not None
    names = {entry.resource_claim_name: entry.name for entry in outcome.pod.status.resource_claim_statuses}
    names.update((entry.claim_name, entry.name) for entry in outcome.pod.claims if entry.claim_name)
    given = devices.given_on(outcome.chain.state.nodes[node].node)
    ours = {names.get(claim.metadata.name, ""): [*map(str, claim.devices)] for claim in given}
    theirs = expect["allocations"]
    wrong = {name: found for name, found in ours.items() if name and theirs.get(name) != found}
    return f"on {node}: scheduler {theirs}, ours {wrong}" if wrong else ""


def refused(outcome: Outcome, expect: Case) -> str:
    """What is different for a pod that the scheduler could not bind: in the attempt whose message stands."""
    while outcome.next is not None and expect["message"] not in outcome.messages:
        # It took a claim's devices back, and then tried again.
        outcome = outcome.next
    if outcome.fits:
        return f"fits on {list(outcome.feasible)}; scheduler: {expect['message']}"
    if outcome.reason != expect.get("reason", outcome.reason):
        return f"reason {outcome.reason}, scheduler: {expect['reason']}"
    if expect["message"] not in outcome.messages:
        return f"message\n  ours:      {outcome.message}\n  scheduler: {expect['message']}"
    best = (
        {entry.node: [pod.metadata.name for pod in entry.victims] for entry in outcome.preemption.best}
        if (outcome.preemption)
        else {}
    )
    nominated = expect.get("nominated")
    if nominated and nominated not in best:
        return f"nominated {nominated}, ours {best}"
    if nominated and sorted(best[nominated]) != sorted(expect["victims"]):
        return f"victims {expect['victims']}, ours {best[nominated]}"
    return f"ours would preempt {best}" if best and not nominated else ""


def of_command(case: Case) -> str:
    """What ``explain`` says otherwise than the cluster; empty where nothing, or a difference that is listed."""
    code, found = diagnose(case)
    expect = case["expect"]
    codes = {cause["code"] for cause in found.get("causes", ())}
    if expect.get("refused") or expect["outcome"] not in ("scheduled", "preset"):
        if code != 1:
            return f"exit {code}: {found.get('answer')}; cluster: {_words(expect)}"
        ours, theirs = found.get("schedulerMessage", ""), expect.get("message")
        same = expect.get("outcome") != "unschedulable" or ours == theirs or (not ours and _by_chance(case))
        # Explain has the message of the first attempt, whose last words may be that a claim was taken back.
        same = same or (TAKEN_BACK in ours and _said_later(case, theirs))
        return "" if same else f"message\n  ours:      {ours}\n  scheduler: {theirs}"
    if expect["outcome"] == "preset":
        # Bound, but nobody allocates its claims: the pod never starts, which is what people have to know.
        bypassed = code == 1 and codes == {"bypassed-scheduler"}
        return "" if code == 0 or bypassed else f"exit {code}: {found.get('answer')}"
    if code != 0:
        return f"exit {code}: {found.get('answer')}; {_words(expect)}"
    offered = {entry["node"]: entry["devices"] for entry in found["placements"]}
    before = _allocated_before(case)
    if expect["node"] not in offered and (offered or len(before) < len(expect["allocations"])):
        return f"scheduled on {expect['node']}, offered {list(offered)}"
    if expect["node"] not in found.get("winners", [expect["node"]]):
        return f"scheduled on {expect['node']}, said to win: {found['winners']}"
    new = (devices for name, devices in expect["allocations"].items() if name not in before)
    theirs = sorted(device for devices in new for device in devices)
    placed = offered.get(expect["node"], ())
    ours = sorted(f"{entry['driver']}/{entry['pool']}/{entry['device']}" for entry in placed)
    return "" if not ours or ours == theirs else f"on {expect['node']}: scheduler {theirs}, ours {ours}"


def _allocated_before(case: Case) -> frozenset[str]:
    """The entries of the pod whose claims already had the devices that they have now."""
    items = case["snapshot"]["items"]
    space, _, name = case["pod"].partition("/")
    own = [item for item in items if item["metadata"].get("namespace") == space]
    claims = [item for item in own if item["kind"] == "ResourceClaim" and (item.get("status") or {}).get("allocation")]
    allocated = {item["metadata"]["name"]: _devices(item["status"]["allocation"]) for item in claims}
    now = case["expect"]["allocations"]
    pod = next(item for item in own if item["kind"] == "Pod" and item["metadata"]["name"] == name)
    entries = pod["spec"].get("resourceClaims") or ()
    known = {entry["name"]: allocated.get(entry.get("resourceClaimName", "")) for entry in entries}
    return frozenset(name for name, devices in known.items() if devices is not None and devices == now.get(name))


def _devices(allocation: Case) -> list[str]:
    return [f"{result['driver']}/{result['pool']}/{result['device']}" for result in allocation["devices"]["results"]]


def _said_later(case: Case, message: str) -> bool:
    """Whether the message is that of an attempt after the scheduler took a claim's devices back."""
    with tempfile.TemporaryDirectory() as folder:
        state, pod = state_of(case, Path(folder))
    outcome = Outcome(pod, state).next
    while outcome is not None and message not in outcome.messages:
        outcome = outcome.next
    return outcome is not None


def _by_chance(case: Case) -> bool:
    """Whether the scheduler writes one of several messages: 1.37 names the node where it evicts, at random."""
    with tempfile.TemporaryDirectory() as folder:
        state, pod = state_of(case, Path(folder))
    return not Outcome(pod, state).certain


def _words(expect: Case) -> str:
    return str(expect.get("refused") or expect.get("message") or f"{expect['outcome']} on {expect.get('node')}")


def _a_minute_later(case: Case) -> Case:
    """The cluster of a case as it stayed: a pod made this second is one that its scheduler may still look at."""
    items = case["snapshot"]["items"]
    made = max(item["metadata"].get("creationTimestamp", "") for item in items)
    return {**case["snapshot"], "kubectl-dra": {"readAt": stamp(datetime.fromisoformat(made) + timedelta(minutes=1))}}


def diagnose(case: Case) -> tuple[int, Case]:
    """Runs ``explain`` on one case; the exit code and its JSON."""
    with tempfile.TemporaryDirectory() as folder:
        snapshot = Path(folder, "snapshot.json")
        ignored = case["expect"].get("outcome") == "ignored"
        snapshot.write_text(json.dumps(_a_minute_later(case) if ignored else case["snapshot"]))
        asked = case["pod"]
        if isinstance(asked, str):
            namespace, _, name = asked.partition("/")
            target = [f"pod/{name}", "-n", namespace]
        else:
            manifest = Path(folder, "pod.json")
            manifest.write_text(json.dumps(asked))
            target = ["-f", str(manifest)]
        config = _config(case, Path(folder))
        target += ["--scheduler-config", str(config)] if config is not None else []
        where = ["--snapshot", str(snapshot), "--complete", "--kubernetes-version", case["release"], "-o", "json"]
        if case.get("gates", ()):
            where += ["--feature-gates", ",".join(f"{name}=true" for name in case.get("gates", ()))]
        code, out, _ = ran("explain", *target, *where)
    return code, json.loads(out or "{}")


def compared(case: Case) -> Iterator[str]:
    """How closely one answer is compared."""
    expect = case["expect"]
    if isinstance(case["pod"], dict):
        yield "the API server refuses the manifest: `explain -f` says no (not the text)"
    elif expect["outcome"] == "scheduled":
        yield "the node is among those that win, with the same devices, as `explain` offers them"
    elif expect["outcome"] == "unschedulable":
        yield "no: the scheduler's message word for word, the node and the victims; in `explain` that or undetermined"
    else:
        yield "not for the scheduler to place: it has a node, a gate or another scheduler"


def run(files: list[Path], options: Any = None) -> int:
    """Prints every disagreement and counts by class, last ``agree N of M``; 0 where all agree."""
    total: Counter[str] = Counter()
    agree: Counter[str] = Counter()
    library = bool(getattr(options, "library", False))
    for path in files:
        for case in lines(path):
            if library and isinstance(case["pod"], dict):
                continue
            problems = [] if isinstance(case["pod"], dict) else [of_library(case)]
            if not library:
                problems.append((said := of_command(case)) and f"explain: {said}")
            problems = [problem for problem in problems if problem]
            total[case["class"]] += 1
            agree[case["class"]] += not problems
            for problem in problems:
                print(f"{case['id']}: {problem}")
            sys.stdout.flush()
    for name in sorted(total):
        print(f"{name}: {agree[name]} of {total[name]}")
    print(f"agree {agree.total()} of {total.total()}")
    return 0 if agree == total else 1
