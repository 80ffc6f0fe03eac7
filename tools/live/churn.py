"""A cluster that never rests: the commands run while nodes, slices, pods, claims and rules come and go.

    python -m tools.live.churn --release 1.37 --minutes 30 --seed 1

One thread creates and deletes, another runs the commands in a loop: none may crash, and each exit code has to be one of
its command. Now and then the cluster is held still. Then ``explain`` and ``fit`` are asked about a new pod, it is
created, and what the scheduler does must be what they said: yes with the node and devices, or no. Pods that wait and
pods that run are asked about as well. Exit code 0 only where nothing was wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, Final

from kubectl_dra.cli.main import run as command
from tools.controlplane.client import Api, ApiError
from tools.controlplane.plane import ControlPlane, own_plane
from tools.controlplane.program import find_program

Json = dict[str, Any]
SPACE: Final = "churn"
DRIVER: Final = "gpu.example.com"
RULES: Final = {"1.36": "resource.k8s.io/v1beta2", "1.37": "resource.k8s.io/v1"}
MOST_NODES: Final = 12
MOST_PODS: Final = 40
PAUSE: Final = 0.05
SETTLED: Final = 2.0
DECIDES_IN: Final = 20.0
STILL_EVERY: Final = 20.0
"""Seconds."""
_ALLOWED: Final = {"explain": {0, 1, 3}, "claims": {0, 1, 3}, "devices": {0, 1, 3}, "top": {0, 1, 3}, "fit": {0, 1, 3}}
_GONE: Final = ("does not exist", "there is no device", "no device is published", "nothing to count")
"""What may be said of an object that went while the command was being typed."""


class Churn:
    """The cluster that changes, in a thread of its own. ``held_still`` stops it for a while."""

    def __init__(self, api: Api, seed: int, rules: str) -> None:
        self._api = api
        self._rng = random.Random(seed)
        self._rules = rules
        self._number = 0
        self._nodes: dict[str, int] = {}
        self._stopped = threading.Event()
        self._still = threading.Lock()
        self._thread = threading.Thread(target=self._play, daemon=True)
        self.done: Counter[str] = Counter()
        self.failure = ""

    def start(self) -> None:
        """Make what is always there, and begin."""
        self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        selector = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        self._api.create(_dra("DeviceClass", "gpu", {"selectors": selector}))
        for count in (1, 2):
            request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}
            spec = {"spec": {"devices": {"requests": [request]}}}
            self._api.create(_dra("ResourceClaimTemplate", f"gpu-{count}", spec, SPACE))
        for _ in range(4):
            self._add_node()
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._stopped.set()
        self._thread.join(30)

    @contextmanager
    def held_still(self) -> Iterator[None]:
        """Nothing changes in the block but by those who are already at it."""
        with self._still:
            yield

    def _play(self) -> None:
        actions: tuple[tuple[int, Callable[[], None]], ...] = (
            (2, self._add_node),
            (2, self._remove_node),
            (4, self._publish_again),
            (10, self._add_pod),
            (8, self._remove_pod),
            (2, self._remove_claim),
            (1, self._add_rule),
            (2, self._remove_rule),
        )
        weights = [weight for weight, _ in actions]
        while not self._stopped.wait(PAUSE):
            with self._still:
                ((_, action),) = self._rng.choices(actions, weights)
                try:
                    action()
                    self.done[action.__name__.strip("_").replace("_", " ")] += 1
                except ApiError as error:
                    # Controllers change the same objects.
                    if error.status not in (404, 409, 422):
                        self.failure = f"{action.__name__}: {error}"
                        return

    def _name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}-{self._number}"

    def _add_node(self) -> None:
        if len(self._nodes) >= MOST_NODES:
            return
        name = self._name("n")
        amounts = {"cpu": self._rng.choice("48"), "memory": "16Gi", "pods": "110"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        metadata = {"name": name, "labels": {"zone": self._rng.choice("ab")}}
        self._api.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
        self._nodes[name] = 0
        self._publish(name)

    def _publish(self, node: str) -> None:
        """A generation of the node's pool: first the new slice, then the old one goes, as drivers do it."""
        self._nodes[node] += 1
        generation = self._nodes[node]
        devices = [{"name": f"gpu-{index}"} for index in range(self._rng.randrange(1, 5))]
        pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        self._api.create(_dra("ResourceSlice", f"{node}-{generation}", spec))
        if generation > 1:
            self._api.delete(_dra("ResourceSlice", f"{node}-{generation - 1}"))

    def _publish_again(self) -> None:
        if self._nodes:
            self._publish(self._rng.choice(list(self._nodes)))

    def _remove_node(self) -> None:
        if len(self._nodes) < 3:
            return
        name = self._rng.choice(list(self._nodes))
        generation = self._nodes.pop(name)
        self._api.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        self._api.delete(_dra("ResourceSlice", f"{name}-{generation}"))
        for pod in self._api.list("v1", "Pod", SPACE):
            if pod["spec"].get("nodeName") == name:
                self._delete_pod(pod)

    def _add_pod(self) -> None:
        if len(self._api.list("v1", "Pod", SPACE)) < MOST_PODS:
            self._api.create(new_pod(self._rng, self._name("p")))

    def _remove_pod(self) -> None:
        pods = self._api.list("v1", "Pod", SPACE)
        if pods:
            self._delete_pod(self._rng.choice(pods))

    def _delete_pod(self, pod: Json) -> None:
        # No kubelet confirms the end of pods here.
        self._api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)

    def _remove_claim(self) -> None:
        claims = self._api.list("resource.k8s.io/v1", "ResourceClaim", SPACE)
        if claims:
            self._api.delete({**_dra("ResourceClaim", ""), **self._rng.choice(claims)})

    def _add_rule(self) -> None:
        if self._nodes:
            effect = self._rng.choice(("NoSchedule", "NoExecute", "None"))
            selector = {"driver": DRIVER, "pool": self._rng.choice(list(self._nodes)), "device": "gpu-0"}
            rule = {"deviceSelector": selector, "taint": {"key": "churn", "effect": effect}}
            made = {"apiVersion": self._rules, "kind": "DeviceTaintRule", "metadata": {"name": self._name("r")}}
            self._api.create({**made, "spec": rule})

    def _remove_rule(self) -> None:
        rules = self._api.list(self._rules, "DeviceTaintRule")
        if rules:
            self._api.delete({"apiVersion": self._rules, "kind": "DeviceTaintRule", **self._rng.choice(rules)})


def _dra(kind: str, name: str, spec: Json | None = None, namespace: str = "") -> Json:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    made: Json = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata}
    return made if spec is None else {**made, "spec": spec}


def new_pod(rng: random.Random, name: str) -> Json:
    """A pod that asks for one or two devices and some cpu, perhaps in one zone."""
    resources = {"requests": {"cpu": rng.choice(("500m", "1", "3"))}, "claims": [{"name": "gpu"}]}
    spec: Json = {
        "containers": [{"name": "main", "image": "example.com/none", "resources": resources}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": rng.choice(("gpu-1", "gpu-1", "gpu-2"))}],
        "terminationGracePeriodSeconds": 0,
    }
    if rng.random() < 0.3:
        spec["nodeSelector"] = {"zone": rng.choice("abc")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": SPACE}, "spec": spec}


class Watcher:
    """Runs the commands and judges what they say."""

    def __init__(self, plane: ControlPlane, churn: Churn, seed: int, folder: Path) -> None:
        self._api = plane.api()
        self._churn = churn
        self._rng = random.Random(f"watcher-{seed}")
        self._folder = folder
        self._connection = ["--kubeconfig", str(plane.kubeconfig), "--context", "admin"]
        self._asked = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def run(self, seconds: float) -> None:
        """Ask until the time is over, and look closely now and then."""
        end = time.monotonic() + seconds
        still = time.monotonic() + min(STILL_EVERY, seconds / 3)
        while time.monotonic() < end and not self._churn.failure:
            self._ask_once()
            if time.monotonic() >= still:
                with self._churn.held_still():
                    self._look_closely()
                still = time.monotonic() + STILL_EVERY

    def _run(self, *words: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = command([*words, *self._connection])
        self.counts[f"{words[0]} {code}"] += 1
        return code, out.getvalue(), err.getvalue()

    def _ask_once(self) -> None:
        pods = self._api.list("v1", "Pod", SPACE)
        slices = self._api.list("resource.k8s.io/v1", "ResourceSlice")
        asked: list[Sequence[str]] = [("explain", "-A"), ("claims",), ("devices",), ("top",), ("taint", "--list")]
        asked += [("fit", "-f", self._workload())]
        if pods:
            asked.append(("explain", f"pod/{self._rng.choice(pods)['metadata']['name']}", "-n", SPACE))
        if slices:
            pool = self._rng.choice(slices)["spec"]["pool"]["name"]
            grace = self._rng.choice(((), ("--drain", "--grace", "1h")))
            asked.append(("taint", f"{DRIVER}/{pool}/gpu-0", "k:NoExecute", *grace, "--dry-run=client"))
        words = self._rng.choice(asked)
        more = self._rng.choice(((), ("-o", "json")))
        self._check(words, *self._run(*words, *more))

    def _workload(self) -> str:
        labels = {"app": "new"}
        pod = new_pod(self._rng, "new")
        template = {"metadata": {"labels": labels}, "spec": pod["spec"]}
        spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": "new", "namespace": SPACE}
        path = self._folder / "deployment.json"
        path.write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}))
        return str(path)

    def _check(self, words: Sequence[str], code: int, out: str, err: str) -> None:
        text = f"{out}{err}"
        if "Traceback" in text or "a defect" in text:
            self._wrong(f"{' '.join(words)} crashes:\n{text}")
        elif code == 2 and not any(known in text for known in _GONE):
            self._wrong(f"{' '.join(words)} ends with an error:\n{text}")
        elif code not in {*_ALLOWED.get(words[0], {0, 3}), 2}:
            self._wrong(f"{' '.join(words)} ends with {code}:\n{text}")

    def _wrong(self, problem: str) -> None:
        self.problems.append(problem)
        print(f"WRONG: {problem}", flush=True)

    # While nothing changes

    def _look_closely(self) -> None:
        self._rest()
        for pod in self._api.list("v1", "Pod", SPACE):
            if not pod["spec"].get("nodeName"):
                # What waits already might take what the new pod is promised.
                self._api.delete({"apiVersion": "v1", "kind": "Pod", **pod}, grace_seconds=0)
        self._rest()
        self._look_at_running()
        self._asked += 1
        self._look_at_new(new_pod(self._rng, f"asked-{self._asked}"))

    def _rest(self) -> None:
        """Waits until controllers and the scheduler have nothing to do."""
        before, since = "", time.monotonic()
        while time.monotonic() - since < SETTLED:
            now = self._state()
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(0.2)

    def _state(self) -> str:
        kinds = (("v1", "Pod"), ("resource.k8s.io/v1", "ResourceClaim"))
        return str([item["metadata"]["resourceVersion"] for kind in kinds for item in self._api.list(*kind, SPACE)])

    def _look_at_running(self) -> None:
        """Every pod that has a node is said to have its devices; those being deleted were, too."""
        for pod in self._api.list("v1", "Pod", SPACE):
            name = pod["metadata"]["name"]
            code, out, err = self._run("explain", f"pod/{name}", "-n", SPACE, "-o", "json")
            self._check(("explain", name), code, out, err)
            self.counts["looked at running"] += 1
            verdict = json.loads(out)["verdict"] if out else ""
            if pod["spec"].get("nodeName") and verdict not in ("allocated", "undetermined") and code == 0:
                self._wrong(f"{name} runs, and is said to be {verdict}:\n{out}")

    def _look_at_new(self, pod: Json) -> None:
        path = self._folder / "pod.json"
        path.write_text(json.dumps(pod))
        code, out, err = self._run("explain", "-f", str(path), "-o", "json")
        self._check(("explain", "-f"), code, out, err)
        fits, fit_out, fit_err = self._run("fit", "-f", str(path))
        self._check(("fit", "-f"), fits, fit_out, fit_err)
        self._api.create(pod)
        node, message = self._decided(pod["metadata"]["name"])
        self.counts[f"new pod {'placed' if node else 'refused'}, said {code}"] += 1
        told = f"explain {code}, fit {fits}; scheduler: {node or message}\n{out}\n{fit_out}{fit_err}"
        if (code in (0, 1) and (code == 0) is not bool(node)) or (fits in (0, 1) and (fits == 0) is not bool(node)):
            self._wrong(f"a new pod: {told}")
        elif node and code == 0:
            found = json.loads(out)
            if node not in found["winners"]:
                self._wrong(f"a new pod is on another node: {told}")
        with suppress(ApiError):
            self._api.delete(pod, grace_seconds=0)

    def _decided(self, name: str) -> tuple[str, str]:
        """Node and message of a pod, once the scheduler has decided."""
        end = time.monotonic() + DECIDES_IN
        found: Json = {}
        while time.monotonic() < end:
            found = self._api.get("v1", "Pod", name, SPACE)
            conditions = (found.get("status") or {}).get("conditions") or ()
            if found["spec"].get("nodeName") or any(condition["type"] == "PodScheduled" for condition in conditions):
                break
            time.sleep(0.1)
        conditions = (found.get("status") or {}).get("conditions") or ()
        said = [condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"]
        return found["spec"].get("nodeName", ""), "".join(said)


def churned(release: str, seed: int, seconds: float) -> Watcher:
    """The commands' record after a time beside a changing cluster of a release."""
    os.environ["KUBECTL_DRA_KUBERNETES"] = release
    with (
        tempfile.TemporaryDirectory() as folder,
        own_plane(find_program(print), ["--profile=full"], Path(folder)) as plane,
    ):
        churn = Churn(plane.api(), seed, RULES[release])
        churn.start()
        watcher = Watcher(plane, churn, seed, Path(folder))
        try:
            watcher.run(seconds)
        finally:
            churn.stop()
        if churn.failure:
            watcher.problems.append(churn.failure)
        watcher.counts.update({f"did: {name}": number for name, number in churn.done.items()})
    return watcher


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.live.churn", description=__doc__)
    parser.add_argument("--release", default="1.36", choices=RULES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    watcher = churned(options.release, options.seed, options.minutes * 60)
    for name, number in sorted(watcher.counts.items()):
        print(f"{name}: {number}")
    print(f"{len(watcher.problems)} problems")
    return 1 if watcher.problems else 0


if __name__ == "__main__":
    sys.exit(main())
