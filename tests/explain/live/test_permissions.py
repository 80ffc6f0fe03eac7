"""Users who may read only a part of the cluster, against each command: an answer is true or undetermined.

In each world one kind of objects decides whether a pod can be scheduled. Whoever may not read that kind must not be
told yes where an administrator is told no, nor the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.taint.live.team import rule_version
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import Program
from tools.live.command import ROOT, Answer, Command

Json = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
READABLE = (
    *yaml.safe_load((ROOT / "examples/rbac/read.yaml").read_text())["rules"],
    {"apiGroups": ["resource.k8s.io"], "resources": ["devicetaintrules"], "verbs": ["get"]},
)
NAMESPACED = ("pods", "resourceclaims", "resourceclaimtemplates", "events", "resourcequotas")
HIDDEN = (
    *("nodes", "resourceslices", "deviceclasses", "pods", "resourceclaims", "resourceclaimtemplates"),
    *("devicetaintrules", "namespaces", "resourcequotas", "events"),
)


# What is true


@dataclass
class World:
    """A cluster in which a pod waits or runs, and where one thing decides. ``others`` is somebody else's namespace."""

    cluster: Cluster
    others: str
    spec: Json = field(default_factory=dict)
    rules: list[Json] = field(default_factory=list)

    def create(self, obj: Json, *, elsewhere: bool = False) -> Json:
        """Makes an object, perhaps in the other namespace."""
        if elsewhere:
            obj = {**obj, "metadata": {**obj["metadata"], "namespace": self.others}}
        return self.cluster.create(obj)

    def pod(self, name: str, *, elsewhere: bool = False, **spec: Any) -> Json:
        """A pod that asks for one device by a claim of its own."""
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}}
        requests = [request(self.cluster.name("gpu"))]
        self.create({**claim, "spec": {"devices": {"requests": requests}}}, elsewhere=elsewhere)
        whole = {**self.cluster.pod_spec(claims={"gpu": name}), **spec}
        return self.create(_pod(name, whole), elsewhere=elsewhere)


def _pod(name: str, spec: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _node_and_devices(world: World, devices: int = 2, **allocatable: str) -> None:
    node = world.cluster.node("node", allocatable=allocatable)
    world.cluster.device_class()
    if devices:
        world.cluster.publish([device(f"gpu-{i}") for i in range(devices)], pool="pool", node=node)


def _fits(world: World) -> None:
    _node_and_devices(world)


def _small_node(world: World) -> None:
    _node_and_devices(world, cpu="1")


def _busy_node(world: World) -> None:
    """Somebody else's pods leave no cpu."""
    _node_and_devices(world)
    resources = {"requests": {"cpu": "7"}}
    container = {"name": "main", "image": "example.com/none", "resources": resources}
    world.create(_pod("busy", {"containers": [container], "nodeName": world.cluster.name("node")}), elsewhere=True)


def _held_elsewhere(world: World) -> None:
    _node_and_devices(world)
    for index in range(2):
        pod = world.pod(f"other-{index}", elsewhere=True)
        wait(lambda pod=pod: _bound(world, pod), "the other pods")  # type: ignore[misc]


def _bound(world: World, pod: Json) -> bool | None:
    found = world.cluster.api.get("v1", "Pod", pod["metadata"]["name"], world.others)
    return True if found["spec"].get("nodeName") else None


def _no_devices(world: World) -> None:
    _node_and_devices(world, devices=0)


def _no_class(world: World) -> None:
    world.cluster.publish([device("gpu-0")], pool="pool", node=world.cluster.node("node"))


def _tainted(world: World) -> None:
    _node_and_devices(world)
    rule = {"apiVersion": f"resource.k8s.io/{rule_version(world.cluster.plane)}", "kind": "DeviceTaintRule"}
    selector = {"driver": world.cluster.driver}
    spec = {"deviceSelector": selector, "taint": {"key": "example.com/bad", "effect": "NoSchedule"}}
    world.create({**rule, "metadata": {"name": world.cluster.name("rule")}, "spec": spec})


def _no_template(world: World) -> None:
    _node_and_devices(world)
    world.spec = world.cluster.pod_spec(templates={"gpu": "absent"})


WORLDS: Mapping[str, Callable[[World], None]] = {
    "fits": _fits,
    "small node": _small_node,
    "busy node": _busy_node,
    "held elsewhere": _held_elsewhere,
    "no devices": _no_devices,
    "no class": _no_class,
    "tainted": _tainted,
    "no template": _no_template,
}


@pytest.fixture(scope="module")
def plane(control_plane_program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A plane on which nothing else runs: `explain -A` and `top` are about all of it."""
    with own_plane(control_plane_program, ["--profile=full"], tmp_path_factory.mktemp("users")) as plane:
        if not plane.schedules:
            pytest.skip("no scheduler")
        yield plane


@pytest.fixture
def world(plane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[World]:
    """The world of the test's parameter, with the pod in it that is asked about."""
    name = request.param.replace(" ", "-")
    cluster = Cluster(plane, name)
    others = f"{name}-others"
    made = World(cluster, others)
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": others}})
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": "gpu"}}
    made.spec = cluster.pod_spec(templates={"gpu": "gpu"})
    WORLDS[request.param](made)
    requests = {"requests": [_request(cluster)]}
    cluster.create({**template, "spec": {"spec": {"devices": requests}}})
    made.spec["containers"][0]["resources"]["requests"] = {"cpu": "2"}
    cluster.create(_pod("asked", made.spec))
    _settle(made)
    yield made
    for pod in cluster.api.list("v1", "Pod", others):
        cluster.api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)
    cluster.remove()


def _request(cluster: Cluster) -> Json:
    return request(cluster.name("gpu"))


def _settle(world: World) -> None:
    """Waits until the scheduler has judged the pod, or its controller has given up on its claim."""
    selector = "involvedObject.name=asked,reason=FailedResourceClaimCreation"

    def judged() -> bool | None:
        found = world.cluster.get("Pod", "asked", "v1")
        conditions = found.get("status", {}).get("conditions") or ()
        if any(condition["type"] == "PodScheduled" for condition in conditions):
            return True
        return bool(world.cluster.api.list("v1", "Event", world.cluster.namespace, fieldSelector=selector)) or None

    wait(judged, "a verdict on the pod")


# Who asks


def users(world: World) -> dict[str, str]:
    """Users by what they may read; their names are the server's."""
    all_rules = [dict(rule) for rule in READABLE]
    found = {"everything": _user(world, "everything", all_rules)}
    for resource in HIDDEN:
        left = [{**rule, "resources": [kept for kept in rule["resources"] if kept != resource]} for rule in all_rules]
        name = f"all-but-{resource}"
        found[name] = _user(world, name, [rule for rule in left if rule["resources"]])
    claims = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["list"]}]
    found["only claims"] = _user(world, "only-claims", claims)
    here = [{**rule, "resources": [each for each in rule["resources"] if each in NAMESPACED]} for rule in all_rules]
    here = [rule for rule in here if rule["resources"]]
    found["one namespace"] = _user(world, "one-namespace", here, namespaced=True)
    found["nothing"] = world.cluster.name("nobody")
    return found


def _user(world: World, name: str, rules: Sequence[Json], *, namespaced: bool = False) -> str:
    user, prefix = world.cluster.name(name), "" if namespaced else "Cluster"
    metadata = {"name": user}
    world.cluster.create({"apiVersion": f"{RBAC}/v1", "kind": f"{prefix}Role", "metadata": metadata, "rules": rules})
    reference = {"apiGroup": RBAC, "kind": f"{prefix}Role", "name": user}
    subjects = [{"apiGroup": RBAC, "kind": "User", "name": user}]
    binding = {"apiVersion": f"{RBAC}/v1", "kind": f"{prefix}RoleBinding", "metadata": metadata}
    world.cluster.create({**binding, "roleRef": reference, "subjects": subjects})
    resource = rules[0]["resources"][0]
    asked = {"group": rules[0]["apiGroups"][0], "resource": resource, "verb": "list"}
    asked["namespace"] = world.cluster.namespace if namespaced else ""
    api = "authorization.k8s.io/v1"
    review: Json = {"apiVersion": api, "kind": "SubjectAccessReview", "metadata": {}}
    review["spec"] = {"user": user, "resourceAttributes": asked}
    wait(lambda: world.cluster.api.create(review)["status"]["allowed"] or None, f"the role of {user}")
    return user


# What they ask


def commands(world: World, folder: Path) -> dict[str, list[str]]:
    """Each command, as somebody who works in the pod's namespace types it."""
    here = ["-n", world.cluster.namespace]
    new, workload = folder / "pod.json", folder / "deployment.json"
    pod, labels = _pod("new", world.spec), {"app": "new"}
    metadata = {"name": "new", "namespace": world.cluster.namespace}
    new.write_text(json.dumps({**pod, "metadata": metadata}))
    template = {"metadata": {"labels": labels}, "spec": world.spec}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    workload.write_text(json.dumps(deployment))
    full = f"{world.cluster.driver}/pool/gpu-0"
    return {
        "explain pod": ["explain", "pod/asked", *here],
        "explain namespace": ["explain", *here],
        "explain -A": ["explain", "-A"],
        "explain -f": ["explain", "-f", str(new), *here],
        "fit": ["fit", "-f", str(workload), *here],
        "lint --live": ["lint", "--live", str(new)],
        "claims": ["claims", *here],
        "claims -A": ["claims"],
        "devices": ["devices"],
        "top": ["top"],
        "taint --dry-run": ["taint", full, "k:NoExecute", "--dry-run=client"],
        "taint --list": ["taint", "--list"],
    }


DECIDES = ("explain pod", "explain namespace", "explain -A", "explain -f", "fit", "lint --live")
"""Commands whose exit code is yes (0) or no (1)."""


@pytest.mark.parametrize("world", WORLDS, indirect=True)
def test_each_answer_is_true_or_undetermined(
    world: World, command: Command, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every second of the users; those of one world are the others of the next."""
    number = list(WORLDS).index(request.node.callspec.params["world"])
    check(world, command, tmp_path, list(users(world).items())[number % 2 :: 2])


@pytest.mark.exhaustive
@pytest.mark.parametrize("world", WORLDS, indirect=True)
def test_each_answer_to_everybody_is_true_or_undetermined(world: World, command: Command, tmp_path: Path) -> None:
    check(world, command, tmp_path, list(users(world).items()))


def check(world: World, command: Command, tmp_path: Path, users_asking: Sequence[tuple[str, str]]) -> None:
    asked = commands(world, tmp_path)
    connection = ["--kubeconfig", str(world.cluster.plane.kubeconfig), "--context", "admin"]

    def ask(words: Sequence[str], user: str = "") -> Answer:
        return command(*words, *connection, *(["--as", user] if user else []))

    truth = {name: (ask(words), ask([*words, "-o", "json"])) for name, words in asked.items()}
    problems = []
    for who, user in users_asking:
        for name, words in asked.items():
            answer = ask(words, user)
            problems += [f"{who}: {name}: {wrong}" for wrong in _wrong(name, answer, truth[name][0])]
            if answer.code != 2:
                data = ask([*words, "-o", "json"], user)
                problems += [f"{who}: {name} -o json: {wrong}" for wrong in _wrong_data(name, data, truth[name][1])]
        problems += [f"{who}: snapshot: {wrong}" for wrong in _wrong_snapshot(world, command, ask, user, tmp_path)]
    assert not problems, "\n".join(problems)


def _wrong(name: str, answer: Answer, truth: Answer) -> Iterator[str]:
    if "Traceback" in answer.text or "defect" in answer.text:
        yield f"a traceback:\n{answer.text}"
    if answer.code == 2:
        errors = [line for line in answer.err.splitlines() if line.startswith("error: ")]
        named = "cannot" in answer.err or "forbidden" in answer.err
        if len(errors) != 1 or not (named or truth.code == 2):
            yield f"not one sentence about what is forbidden:\n{answer.text}"
    elif answer.code == 3:
        if "forbidden" not in answer.text and "cannot" not in answer.text:
            yield f"undetermined, and it does not say why:\n{answer.text}"
    elif name in DECIDES and answer.code != truth.code:
        yield f"exit {answer.code}, and {truth.code} is true:\n{answer.text}\ntrue is:\n{truth.text}"


def _wrong_data(name: str, answer: Answer, truth: Answer) -> Iterator[str]:
    """What numbers and states say: a device is free, a claim is in use, no pod is deleted."""
    if not truth.out or not answer.out:
        return
    found, true = json.loads(answer.out), json.loads(truth.out)
    if name == "devices":
        states = {_device(row): row["state"] for row in true["items"]}
        for row in found["items"]:
            if row["state"] == "free" and states[_device(row)] != "free":
                yield f"{row['device']} is said to be free, and is {states[_device(row)]}"
    elif name == "top":
        free, really = (each["summary"]["states"].get("free", 0) for each in (found, true))
        if free > really:
            yield f"{free} devices are said to be free, and {really} are"
    elif name.startswith("claims"):
        known = {(item["namespace"], item["name"]): item["state"] for item in true["items"]}
        for item in found["items"]:
            state = known[item["namespace"], item["name"]]
            if item["state"] not in (state, "unknown") and not found.get("notes"):
                yield f"claim {item['name']} is said to be {item['state']}, and is {state}"
    elif name == "taint --dry-run":
        deleted, really = (each["blastRadius"]["podsDeleted"] for each in (found, true))
        if deleted not in (None, really):
            yield f"{deleted} pods are said to be deleted, and {really} are"


def _device(row: Json) -> tuple[str, str, str]:
    return row["driver"], row["pool"], row["device"]


def _wrong_snapshot(
    world: World, command: Command, ask: Callable[..., Answer], user: str, folder: Path
) -> Iterator[str]:
    """What was forbidden is recorded, so that the file does not look like a cluster without it."""
    path = folder / f"{user}.json"
    made = ask(["snapshot", "-o", str(path), "--force", "-n", world.cluster.namespace], user)
    if made.code == 2:
        yield from _wrong("snapshot", made, made)
        return
    target = ["explain", "pod/asked", "-n", world.cluster.namespace]
    live = ask(target, user)
    saved = command(*target, "--snapshot", str(path))
    if live.code != 2 and saved.code != live.code:
        yield f"exit {saved.code} from the file, {live.code} live:\n{saved.text}\nlive:\n{live.text}"
