"""Record what the API server of a Kubernetes release answers to manifests, to changes of objects, and how it converts.

    make record KUBERNETES=1.37.1       # the corpora of that release, and what differs from those before
    python -m tools.recorder.manifests --kubernetes 1.37.1 --seed 7 --count 3000 fresh.jsonl.gz
    python -m tools.recorder.manifests --kubernetes 1.37.1 --seed 7 --count 300 --conversions fresh.jsonl.gz

Objects are made up from the seed: every kind of resource.k8s.io in every version that the server serves, pods and
workloads that use devices. Most have one to three changes that follow the server's own OpenAPI. A line has ``release``,
``features`` (gates that differ from the release's defaults), ``manifest`` and ``expect``; one about a change also
``old``, the object as it was stored, and perhaps ``subresource``. `python -m tests.conformance manifests FILE` judges
them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from kubectl_dra.api.dra_fields import KINDS
from kubectl_dra.api.releases import Release, gate_default, known_gates, parse_release
from tools.controlplane.client import Api, ApiError
from tools.controlplane.plane import own_plane
from tools.controlplane.program import VERSION_VARIABLE, find_program, kubernetes_version
from tools.recorder.dra_objects import MAKERS, claim_status, shaped
from tools.recorder.mutations import Schemas, known, mutated
from tools.recorder.pod_objects import WORKLOADS, workload
from tools.recorder.recorded import DATA, lines

Json = dict[str, Any]
GROUP = "resource.k8s.io"
LONGEST_MESSAGE = 160
STATUS_KINDS = ("ResourceClaim", "DeviceTaintRule")
"""The kinds whose status drivers and controllers write."""
PROFILE = ("DRADeviceTaints", "DRADeviceTaintRules", "DRAResourcePoolStatus")
"""The gates that the control plane of tests has on."""


class Part(NamedTuple):
    """A part of a release's corpus: made with this seed, at a server with default gates or with every DRA gate on."""

    seed: int
    size: int
    all_gates: bool
    kinds: str
    """create, pods, update, status or conversions."""


PLAN = (
    Part(201, 900, False, "create"),
    Part(202, 400, False, "pods"),
    Part(203, 300, False, "update"),
    Part(204, 150, False, "status"),
    Part(205, 500, True, "create"),
    Part(206, 150, True, "update"),
    Part(207, 150, True, "status"),
    Part(208, 200, False, "conversions"),
    Part(209, 150, True, "conversions"),
)


class Server:
    """A server that is asked, with what it serves."""

    def __init__(self, api: Api, features: list[str], expressions: tuple[str, ...] = ()) -> None:
        self.api = api
        self.features = features
        self.expressions = expressions
        """Device selectors to put into manifests. With some, changes are more and wilder."""
        self.release = api.request("GET", "/version")["gitVersion"].removeprefix("v")
        self._schemas: dict[str, Schemas] = {}
        self.kinds = [
            (version, kind)
            for version in api.versions(GROUP)
            for kind in sorted(api.kinds(f"{GROUP}/{version}"))
            if kind in MAKERS
        ]
        """Every version and kind of the group that is served."""

    def schemas(self, api_version: str) -> Schemas:
        """The OpenAPI of a group version."""
        if api_version not in self._schemas:
            root = "apis" if "/" in api_version else "api"
            answer = self.api.request("GET", f"/openapi/v3/{root}/{api_version}")
            self._schemas[api_version] = Schemas(answer["components"]["schemas"], self.expressions)
        return self._schemas[api_version]

    def asked(self, method: str, path: str, manifest: Json) -> tuple[Json, Json | None]:
        """The answer to a request as it is recorded, and the object answered."""
        try:
            return {"accepted": True, "code": 201 if method == "POST" else 200}, self.api.request(
                method, path, manifest
            )
        except ApiError as error:
            expect: Json = {"accepted": False, "code": error.status}
            if error.status == 422:
                expect["causes"] = [
                    {
                        "field": cause.get("field", ""),
                        "reason": cause.get("reason", ""),
                        "message": str(cause.get("message", ""))[:LONGEST_MESSAGE],
                    }
                    for cause in error.causes
                ]
            else:
                expect["message"] = error.message[: 3 * LONGEST_MESSAGE]
            return expect, None

    def line(self, name: str, manifest: Json, change: str, expect: Json, **more: Any) -> Json:
        """A line of a corpus."""
        head = {"id": name, "release": self.release, "features": self.features, "change": change}
        return {**head, **more, "manifest": manifest, "expect": expect}

    def still_has(self, old: Json) -> bool:
        """Whether no controller changed or removed a stored object since."""
        try:
            now = self.api.request("GET", self.path(old))
        except ApiError:
            return False
        found: bool = now["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]
        return found

    def path(self, manifest: Json, subresource: str = "", *, named: bool = True) -> str:
        """The URL path of an object or, not ``named``, of its collection."""
        metadata = manifest["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"] if named else ""
        path = self.api.path(manifest["apiVersion"], manifest["kind"], namespace, name)
        return path + (f"/{subresource}" if subresource else "")


DRY = "?dryRun=All&fieldValidation=Strict"
STRICT = "?fieldValidation=Strict"


CHANGES = (0.12, 0.5, 0.26, 0.12)
"""How probable no change, one, two and three are."""
ADMISSION = ("resource name may not be empty",)
"""What admission plugins answer without the code of a refusal: that of runtime classes, to an empty name."""


def changed(
    rng: random.Random, server: Server, manifest: Json, within: tuple[str, ...], least: int
) -> tuple[Json, str]:
    """A manifest with no change to three changes, or one to five, and their words."""
    words = []
    numbers, weights = ((1, 2, 3, 5), (0.3, 0.3, 0.2, 0.2)) if server.expressions else ((0, 1, 2, 3), CHANGES)
    for _ in range(rng.choices(numbers, weights)[0] or least):
        with suppress(IndexError, KeyError, TypeError):
            manifest, word = mutated(rng, manifest, server.schemas(manifest["apiVersion"]), within)
            words.append(word)
    return manifest, "; ".join(words) or "none"


def made(rng: random.Random, server: Server, name: str) -> Json:
    """An object of a served version of a DRA kind, with fields that the server knows."""
    version, kind = rng.choice(server.kinds)
    manifest = shaped(MAKERS[kind](rng, name), version, kind)
    if rng.random() < 0.03:
        return manifest
    schemas = server.schemas(manifest["apiVersion"])
    found: Json = known(manifest, schemas.of(manifest["apiVersion"], kind), schemas)
    return found


def created(server: Server, part: Part) -> Iterator[Json]:
    """Answers to dry-run creates of DRA kinds."""
    for index in range(part.size):
        rng = random.Random(f"create-{part.seed}-{index}")
        manifest, change = changed(rng, server, made(rng, server, "thing"), ("metadata", "spec"), 0)
        yield from creation(server, f"create-{part.seed}-{index}", manifest, change)


def creation(server: Server, name: str, manifest: Json, change: str) -> Iterator[Json]:
    """The answer to a dry-run create; none where an admission plugin refuses it, which looks at the cluster."""
    namespace = manifest["metadata"].get("namespace") if isinstance(manifest.get("metadata"), dict) else None
    # The URL decides for a namespace that the manifest does not name.
    path = server.api.path(manifest["apiVersion"], manifest["kind"], "admin" if namespace == "admin" else "default")
    expect, _ = server.asked("POST", path + DRY, manifest)
    if expect["code"] != 403 and expect.get("message") not in ADMISSION:
        yield server.line(name, manifest, change, expect)


def pods(server: Server, part: Part) -> Iterator[Json]:
    """Answers to dry-run creates of pods and workloads."""
    for index in range(part.size):
        rng = random.Random(f"pods-{part.seed}-{index}")
        kind = rng.choices(list(WORKLOADS), (6, 2, 1, 1, 1, 2, 1))[0]
        manifest, change = changed(rng, server, workload(rng, kind, "thing"), ("metadata", "spec"), 0)
        yield from creation(server, f"pods-{part.seed}-{index}", manifest, change)


def stored(server: Server, manifest: Json) -> Json | None:
    """The object as the server has stored it now; None where it refuses it."""
    _, found = server.asked("POST", server.path(manifest, named=False) + STRICT, manifest)
    return found


def ownerless(manifest: Json) -> Json:
    """A manifest without an owner: an object whose owner does not exist is removed soon."""
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "ownerReferences"}
    return {**manifest, "metadata": metadata}


def forget(server: Server, manifest: Json) -> None:
    """Remove an object, whatever holds it."""
    with suppress(ApiError):
        server.api.request("DELETE", server.path(manifest), {})
        if manifest["metadata"].get("finalizers"):
            server.api.patch(manifest, {"metadata": {"finalizers": None}})


def updated(server: Server, part: Part) -> Iterator[Json]:
    """Answers to dry-run updates of stored objects of DRA kinds."""
    for index in range(part.size):
        rng = random.Random(f"update-{part.seed}-{index}")
        first = ownerless(made(rng, server, f"update-{part.seed}-{index}"))
        if first["kind"] not in KINDS:
            continue
        old = stored(server, first)
        if old is None:
            continue
        try:
            base = written(old) if rng.random() < 0.8 else old
            manifest, change = changed(rng, server, base, ("metadata", "spec"), 1)
            if is_of(old, manifest):
                expect, _ = server.asked("PUT", server.path(old) + DRY, manifest)
                if server.still_has(old):
                    yield server.line(f"update-{part.seed}-{index}", manifest, change, expect, old=readable(old))
        finally:
            forget(server, old)


def is_of(old: Json, manifest: Json) -> bool:
    """Whether a manifest has the name of a stored object: with another one, no client would replace that object."""
    metadata = manifest.get("metadata")
    return isinstance(metadata, dict) and metadata.get("name") == old["metadata"]["name"]


def statuses(server: Server, part: Part) -> Iterator[Json]:
    """Answers to dry-run updates of status, as schedulers, controllers and drivers make them."""
    for index in range(part.size):
        rng = random.Random(f"status-{part.seed}-{index}")
        version = rng.choice([version for version, kind in server.kinds if kind == "ResourceClaim"])
        schemas = server.schemas(f"{GROUP}/{version}")
        schema = schemas.of(f"{GROUP}/{version}", "ResourceClaim")
        first = ownerless(shaped(MAKERS["ResourceClaim"](rng, f"status-{part.seed}-{index}"), version, "ResourceClaim"))
        wanted = claim_status(rng, first["spec"])
        old = stored(server, known(first, schema, schemas))
        if old is None:
            continue
        try:
            base: Json = known({**old, "status": wanted}, schema, schemas)
            if rng.random() < 0.6:
                _, allocated = server.asked("PUT", server.path(old, "status") + STRICT, base)
                old = allocated or old
                base = old if allocated else base
            manifest, change = changed(rng, server, base, ("status",), 1)
            expect, _ = server.asked("PUT", server.path(old, "status") + DRY, manifest)
            more = {"old": readable(old), "subresource": "status"}
            if server.still_has(old):
                yield server.line(f"status-{part.seed}-{index}", manifest, change, expect, **more)
        finally:
            forget(server, old)


def conversions(server: Server, part: Part) -> Iterator[Json]:
    """Objects as they were created, and as each served version prints them."""
    for index in range(part.size):
        rng = random.Random(f"convert-{part.seed}-{index}")
        name = f"convert-{part.seed}-{index}"
        manifest = ownerless(made(rng, server, name))
        if rng.random() < 0.5:
            manifest, _ = changed(rng, server, manifest, ("spec",), 0)
        first = stored(server, manifest)
        if first is None or first["kind"] not in KINDS:
            continue
        line: Json = {"id": name, "release": server.release, "features": server.features, "from": manifest}
        try:
            for version in [version for version, kind in server.kinds if kind == manifest["kind"]]:
                there = {**first, "apiVersion": f"{GROUP}/{version}"}
                line[version] = written(server.api.request("GET", server.path(there)))
            yield line
        finally:
            forget(server, first)


def written(old: Json) -> Json:
    """A stored object as people write it: without its status, and what the server added to its metadata."""
    return {name: value for name, value in as_written(old).items() if name != "status"}


def as_written(found: Json) -> Json:
    """A stored object without what the server added to its metadata."""
    added = ("uid", "creationTimestamp", "generation", "managedFields", "resourceVersion")
    metadata = {name: value for name, value in found["metadata"].items() if name not in added}
    return {**found, "metadata": metadata}


def readable(found: Json) -> Json:
    """A stored object without the record of who wrote what."""
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    return {**found, "metadata": metadata}


WAYS = {"create": created, "pods": pods, "update": updated, "status": statuses, "conversions": conversions}


def changed_gates(release: Release, *, every: bool) -> list[str]:
    """The gates that differ from the release's defaults: of the test control plane, or every one of devices."""
    wanted: tuple[str, ...] = PROFILE
    if every:
        # A gate of whole workloads needs others that are of no interest here.
        wanted = tuple(gate for gate in known_gates() if gate.startswith("DRA") and "Workload" not in gate)
    return [f"+{gate}" for gate in wanted if gate_default(gate, release) is False]


def recorded(version: str, parts: list[Part], *, wild: bool = False) -> Iterator[tuple[Part, Json]]:
    """The lines of each part, in order, from one control plane for each set of gates."""
    release = parse_release(version)
    os.environ[VERSION_VARIABLE] = str(release)
    if kubernetes_version() != version:
        print(f"the control plane of tests is {kubernetes_version()}; tests/controlplane/README.md says how to move it")
    selectors = [case["expression"] for case in lines(DATA / f"cel-{release}.jsonl.gz")] if wild else []
    for every in (False, True):
        chosen = [part for part in parts if part.all_gates is every]
        if not chosen:
            continue
        features = changed_gates(release, every=every)
        on = ",".join(f"{change[1:]}=true" for change in features) if every else ""
        arguments = [f"--feature-gates={on}"] if on else []
        with tempfile.TemporaryDirectory() as folder, own_plane(find_program(print), arguments, Path(folder)) as plane:
            api = plane.api()
            labels = {"resource.kubernetes.io/admin-access": "true"}
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "admin", "labels": labels}})
            server = Server(api, features, tuple(selectors))
            for part in chosen:
                for line in WAYS[part.kinds](server, part):
                    yield part, line


def write(file: Path, found: list[Json]) -> None:
    """Write a corpus, the same bytes for the same lines."""
    with gzip.GzipFile(file, "wb", mtime=0) as out:
        for line in found:
            out.write(
                json.dumps(line, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
            )


def renew(version: str) -> None:
    """Record the corpora of a release again, and print which of their lines are answered otherwise than before."""
    release = parse_release(version)
    corpora: dict[str, list[Json]] = {"manifests": [], "conversions": []}
    for part, line in recorded(version, list(PLAN)):
        corpora["conversions" if part.kinds == "conversions" else "manifests"].append(line)
    for name, found in corpora.items():
        file = DATA / f"{name}-{release}.jsonl.gz"
        before = {line["id"]: line for line in lines(file)} if file.exists() else {}
        write(file, found)
        differing = [line["id"] for line in found if differs(line, before.get(line["id"]))]
        print(f"{file}: {len(found)} lines, {len(differing)} answered otherwise than before:", *differing)


def differs(line: Json, before: Json | None) -> bool:
    """Whether a server answers the same question otherwise than before."""
    asked = ("from", "manifest", "features")
    if before is None or any(line.get(name) != before.get(name) for name in asked):
        return False
    return bool(answer(line) != answer(before))


def answer(line: Json) -> Any:
    """What a server decided, without its clock and its identifiers."""
    if "expect" in line:
        causes = line["expect"].get("causes", ())
        return line["expect"]["code"], sorted((cause["field"], cause["reason"]) for cause in causes)
    return {name: value.get("spec") for name, value in line.items() if name.startswith("v1")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", required=True, metavar="VERSION", help="such as 1.37.1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500, help="how many of each sort")
    parser.add_argument("--sorts", default=",".join(WAYS), help="of %(default)s")
    parser.add_argument("--conversions", action="store_true", help="only conversions")
    parser.add_argument("--wild", action="store_true", help="more and wilder changes, with any device selectors")
    parser.add_argument("--all-gates", action="store_true", help="switch every gate of devices on")
    parser.add_argument("file", type=Path, nargs="?", help="where to write; the release's corpora where not given")
    options = parser.parse_args()
    if options.file is None:
        renew(options.kubernetes)
        return
    sorts = (
        ["conversions"] if options.conversions else [each for each in options.sorts.split(",") if each != "conversions"]
    )
    parts = [Part(options.seed, options.count, options.all_gates, sort) for sort in sorts]
    found = [line for _, line in recorded(options.kubernetes, parts, wild=options.wild)]
    write(options.file, found)
    codes = Counter(line["expect"]["code"] if "expect" in line else 201 for line in found)
    print(*(f"{code}: {count:,}" for code, count in sorted(codes.items())), sep="\n")


if __name__ == "__main__":
    main()
