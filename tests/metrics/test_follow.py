"""A followed cluster is the one that a new read would find, whatever the server did in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cluster import follow, watch
from kubectl_dra.cluster.connection import ConnectionOptions
from kubectl_dra.cluster.duplicates import essence
from kubectl_dra.cluster.follow import FollowedCluster
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.cluster.snapshot import FORBIDDEN, KINDS, UNREADABLE, Snapshot
from kubectl_dra.errors import ClusterError
from tools.watched_server import WatchedServer, collection

EXAMPLE = Path(__file__).parents[2] / "examples" / "explain" / "mixed-fleet" / "cluster.yaml"
Json = dict[str, Any]


def objects() -> list[Json]:
    found = [entry for entry in yaml.safe_load_all(EXAMPLE.read_text()) if entry]
    return [item for entry in found for item in (entry["items"] if entry["kind"].endswith("List") else [entry])]


class World:
    """A server and somebody who follows it."""

    def __init__(self, directory: Path, more: list[Json]) -> None:
        self.server = WatchedServer([*objects(), *more])
        options = ConnectionOptions(kubeconfig=self.server.kubeconfig(directory), request_timeout=5.0)
        self.options = options
        self.followed = FollowedCluster(self.connect)

    def connect(self) -> ApiServer:
        return ApiServer(self.options)

    def start(self) -> None:
        self.followed.start(KINDS)
        until(lambda: self.followed.known)

    def agrees(self) -> bool:
        return facts(self.followed.snapshot()) == facts(self.connect().read_snapshot(KINDS, compact=True))


def facts(snapshot: Snapshot) -> list[Any]:
    tables: list[Mapping[Any, Any]] = [snapshot.pods, snapshot.claims, snapshot.templates, snapshot.nodes]
    tables += [snapshot.classes, snapshot.namespaces, {entry.name: entry for entry in snapshot.slices}]
    tables.append({(event.namespace, event.name, event.reason): event for event in snapshot.events})
    return [*({key: essence(each) for key, each in table.items()} for table in tables), snapshot.release]


def until(done: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def all_told(world: World) -> bool:
    """Whether nothing is new any more. Kinds are read one after another: each is news."""
    world.followed.snapshot()
    world.followed.told()
    return world.followed.lag() < 0.05


def agrees_once_tended(world: World) -> bool:
    """Whether nothing is missing once what was refused is asked for again."""
    world.followed.tend()
    time.sleep(0.1)
    return world.agrees()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(watch, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(watch, "_LONGEST_WAIT", 0.05)
    made = World(tmp_path, [])
    yield made
    made.followed.stop()
    made.server.close()


def pod(name: str, phase: str = "Pending", **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "ml", "creationTimestamp": "2026-11-01T00:00:00Z"}
    container = {"name": "main", "image": "none"}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


class Churn:
    """Objects come, change and go by chance."""

    def __init__(self, server: WatchedServer, seed: int) -> None:
        self.server = server
        self.chance = random.Random(seed)
        self.pods: list[str] = []
        self.slices = [entry for entry in objects() if entry["kind"] == "ResourceSlice"]

    def step(self) -> None:
        action = self.chance.choice((self.add, self.add, self.bind, self.remove, self.publish, self.withdraw))
        action()

    def add(self) -> None:
        name = f"pod-{self.chance.randrange(10_000)}"
        self.pods.append(name)
        self.server.put(pod(name))

    def bind(self) -> None:
        if self.pods:
            self.server.put(pod(self.chance.choice(self.pods), "Running", nodeName="gaudi-1"))

    def remove(self) -> None:
        if self.pods:
            name = self.pods.pop(self.chance.randrange(len(self.pods)))
            if name not in self.pods:
                self.server.delete("Pod", name, "ml")

    def publish(self) -> None:
        entry = self.chance.choice(self.slices)
        generation = self.chance.randrange(5)
        self.server.put(
            {**entry, "spec": {**entry["spec"], "pool": {**entry["spec"]["pool"], "generation": generation}}}
        )

    def withdraw(self) -> None:
        entry = self.chance.choice(self.slices)
        self.server.put(entry)
        self.server.delete("ResourceSlice", entry["metadata"]["name"])


@pytest.mark.parametrize("seed", range(3))
def test_the_same_as_a_new_read(world: World, seed: int) -> None:
    world.start()
    churn = Churn(world.server, seed)
    troubles = (world.server.end_watches, world.server.forget, lambda: None)
    for _ in range(8):
        for _ in range(25):
            churn.step()
        churn.chance.choice(troubles)()
        for _ in range(5):
            churn.step()
        until(world.agrees)


def test_changes_that_were_forgotten(world: World) -> None:
    """The server answers 410 to who comes back too late: that kind is read again, and nothing is lost."""
    world.start()
    lists = {own.kind: own.lists for own in world.followed.counts()}
    world.server.close()
    world.server.put(pod("late"))
    world.server.delete("Pod", "serve-0", "ml")
    world.server.put(objects()[0])
    world.server.forget()
    until(lambda: world.followed.lag() > 0.1)
    world.server.open()
    until(world.agrees)
    assert ("ml", "late") in world.followed.snapshot().pods
    until(lambda: all(own.lists > lists[own.kind] for own in world.followed.counts()))
    until(lambda: all_told(world))


def test_a_stream_that_ends_loses_nothing_and_reads_nothing(world: World) -> None:
    world.start()
    until(lambda: all(own.live for own in world.followed.counts()))
    for number in range(5):
        world.server.end_watches()
        world.server.put(pod(f"between-{number}"))
    until(world.agrees)
    assert all(own.lists == (2 if own.kind == "Event" else 1) for own in world.followed.counts())


@pytest.mark.parametrize("code", [429, 500, 503, 504])
def test_a_server_that_is_busy(world: World, code: int) -> None:
    world.start()
    pods = collection("Pod")
    world.server.refused[f"{pods}?watch"] = code
    world.server.end_watches()
    world.server.put(pod("meanwhile"))
    until(lambda: world.server.asked.count(f"{pods}?watch") > 4)
    assert ("ml", "meanwhile") not in world.followed.snapshot().pods
    assert world.followed.lag() > 0.01
    del world.server.refused[f"{pods}?watch"]
    until(world.agrees)


def test_a_list_that_fails_at_first(world: World) -> None:
    world.server.refused[collection("Pod")] = 500
    world.followed.start(KINDS)
    until(lambda: any(own.kind == "Pod" and own.errors for own in world.followed.counts()))
    assert not world.followed.known
    world.server.refused.clear()
    until(lambda: world.followed.known)
    assert world.agrees()


def test_what_may_not_be_read_is_a_gap_until_it_may(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.server.refused[collection("Node")] = 403
    world.start()
    snapshot = world.followed.snapshot()
    assert [gap.reason for gap in snapshot.unread(("Node",))] == [FORBIDDEN] and not snapshot.nodes
    # That nobody may know it does not make the rest late.
    until(lambda: all_told(world))
    monkeypatch.setattr(follow, "TEND_SECONDS", 0.0)
    world.followed.tend()
    assert world.followed.snapshot().unread(("Node",))
    world.server.refused.clear()
    # The last refusal may still be on its way: then it is the next question that is answered.
    until(lambda: agrees_once_tended(world))
    assert not world.followed.snapshot().unread(("Node",))


def test_who_may_list_and_not_watch_asks_now_and_then(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.server.refused[f"{collection('Pod')}?watch"] = 403
    world.start()
    world.server.put(pod("unwatched"))
    monkeypatch.setattr(follow, "TEND_SECONDS", 0.0)
    until(lambda: agrees_once_tended(world))
    assert ("ml", "unwatched") in world.followed.snapshot().pods


def test_a_kind_whose_reading_could_not_begin_is_followed_later(world: World) -> None:
    """The server is away when a pod first points to it: it is not forgotten."""
    world.start()
    world.server.close()
    with pytest.raises(ClusterError):
        world.followed.follow(["PodGroup"])
    world.server.open()
    assert world.followed.follow(["PodGroup"]) and not world.followed.follow(["PodGroup"])
    until(lambda: any(own.kind == "PodGroup" and own.lists for own in world.followed.counts()))


def test_a_kind_of_which_nobody_says_where_it_is_is_a_gap(world: World) -> None:
    world.start()
    world.server.refused["/apis/scheduling.k8s.io"] = 403
    assert world.followed.follow(["PodGroup"])
    assert [gap.reason for gap in world.followed.snapshot().unread(("PodGroup",))] == [FORBIDDEN]
    assert world.followed.known


def test_a_heartbeat_is_no_change(world: World) -> None:
    world.start()
    world.followed.snapshot()
    world.followed.told()
    node = next(entry for entry in objects() if entry["kind"] == "Node")
    conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-01T00:00:00Z"}]
    node = {**node, "status": {**node["status"], "conditions": conditions}}
    world.server.put(node)
    until(lambda: any(own.kind == "Node" and own.changes for own in world.followed.counts()))
    world.followed.snapshot()
    conditions = [{**conditions[0], "lastHeartbeatTime": "2026-11-01T00:05:00Z"}]
    metadata = {**node["metadata"], "managedFields": [{"x": 1}]}
    beat = {**node, "metadata": metadata, "status": {**node["status"], "conditions": conditions}}
    world.server.put(beat)
    until(lambda: any(own.kind == "Node" and own.changes > 1 for own in world.followed.counts()))
    assert not world.followed.wait(0.05)
    world.server.put({**beat, "spec": {"unschedulable": True}})
    assert world.followed.wait(5)


def test_an_object_that_cannot_be_read(world: World) -> None:
    world.start()
    world.server.put({**pod("odd"), "spec": {"containers": "none"}})
    until(lambda: bool(world.followed.snapshot().unread(("Pod",))))
    assert [gap.reason for gap in world.followed.snapshot().unread(("Pod",))] == [UNREADABLE]
    world.server.put(pod("odd"))
    until(lambda: not world.followed.snapshot().unread(("Pod",)))
    assert ("ml", "odd") in world.followed.snapshot().pods


def event(name: str, about: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "ml"},
        "involvedObject": {"kind": "Pod", "namespace": "ml", "name": about},
        "reason": "FailedScheduling",
        "lastTimestamp": "2026-11-01T00:00:00Z",
    }


def test_events_about_pods_without_devices_are_not_kept(world: World) -> None:
    """In a large cluster they are most of all objects."""
    world.start()
    world.server.put(pod("plain", "Running", nodeName="gaudi-1"))
    world.server.put(event("about-plain", "plain"))
    world.server.put(event("about-serve", "serve-0"))
    world.server.put(event("about-nobody", "gone"))
    until(lambda: any(own.kind == "Event" and own.changes >= 3 for own in world.followed.counts()))
    until(lambda: ("ml", "plain") in world.followed.snapshot().pods)
    assert [known_event.name for known_event in world.followed.snapshot().events] == ["serve-0"]


def test_churn_leaves_nothing_behind(world: World) -> None:
    """What a day of changes does at speed: the same objects, and no more memory for them."""
    import gc
    import tracemalloc

    world.start()
    claim = next(entry for entry in objects() if entry["kind"] == "ResourceClaim")

    def churn(first: int, count: int) -> None:
        for number in range(first, first + count):
            world.server.put(pod(f"pod-{number}", nodeName="gaudi-1"))
            world.server.put(event(f"event-{number}", f"pod-{number}"))
            name = f"claim-{number}"
            world.server.put({**claim, "metadata": {"name": name, "namespace": "ml"}, "status": {}})
            world.server.put({**claim, "metadata": {"name": name, "namespace": "ml"}, "status": {}, "spec": {}})
            world.server.delete("Pod", f"pod-{number}", "ml")
            world.server.delete("ResourceClaim", name, "ml")
            world.server.delete("Event", f"event-{number}", "ml")
            if number % 100 == 99:
                until(world.agrees)
                world.server.forget()

    churn(0, 300)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.take_snapshot()
        churn(300, 1000)
        gc.collect()
        after = tracemalloc.take_snapshot()
    finally:
        tracemalloc.stop()
    ours = [tracemalloc.Filter(True, "*/kubectl_dra/cluster/*")]
    grown = after.filter_traces(ours).compare_to(before.filter_traces(ours), "filename")
    assert sum(entry.size_diff for entry in grown) < 400_000, grown[:5]
    assert world.agrees()
