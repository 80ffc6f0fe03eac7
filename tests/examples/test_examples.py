"""The examples: their output, and that they are what a real cluster could hold."""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kubectl_dra.api.claims import ResourceClaim, ResourceClaimTemplate
from kubectl_dra.cel import Environment, compile_expression
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from tools.examples import GOLDENS, ROOT, arguments, examples, run

EXAMPLES = examples()
IDS = [example.name for example in EXAMPLES]
SCHEMAS = ROOT / "schemas" / "kubernetes" / "1.36"
FILES = {"README.md", "command", "exit-code", *GOLDENS}
SNAPSHOTS = {"cluster.yaml", "cluster.json"}
MANIFESTS = {"pod.yaml", "manifest.yaml"}
# Names that a selector reads although no device has them: what the example is about.
ABSENT = {"driver-not-installed": {"gpu.amd.com/productName"}}
# Drivers that classes name although nobody publishes their devices: the same.
SILENT = {"driver-not-installed": {"gpu.amd.com"}}
COST_LIMIT = 1_000_000
_READ = re.compile(r"""device\.(?:attributes|capacity)\[["']([^"']+)["']\]\.\??([A-Za-z_]\w*)""")
_DRIVER = re.compile(r"""device\.driver == ["']([^"']+)["']""")

each = pytest.mark.parametrize("example", EXAMPLES, ids=IDS)


@each
@pytest.mark.parametrize("golden", GOLDENS)
def test_output(example: Path, golden: str) -> None:
    outcome = run(example, *GOLDENS[golden])
    assert outcome.stderr == ""
    assert outcome.stdout == (example / golden).read_text(encoding="utf-8")
    assert outcome.code == int((example / "exit-code").read_text())


@each
def test_the_answer_is_short(example: Path) -> None:
    """Fifteen lines, and one more where the first fix takes it."""
    lines = (example / "expected.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 16


@each
def test_files(example: Path) -> None:
    names = {path.name for path in example.iterdir()}
    assert names >= FILES
    assert len(names & SNAPSHOTS) == 1
    assert names <= FILES | SNAPSHOTS | MANIFESTS
    words = arguments(example)
    used = {word for word in words if "." in word}
    assert used == names & (SNAPSHOTS | MANIFESTS), "the command uses every input and nothing else"
    lines = (example / "command").read_text().splitlines()
    assert len(lines) == 1
    readme = (example / "README.md").read_text()
    assert readme.startswith("# ")
    assert "Lesson: " in readme
    assert 5 <= len(readme.splitlines()) <= 20


def test_index_names_every_example() -> None:
    listed = re.findall(r"^\| \[([^]]+)\]\(\1/README\.md\)", (ROOT / "examples/explain/README.md").read_text(), re.M)
    assert listed == IDS


@each
def test_snapshot_is_a_list_as_kubectl_writes_it(example: Path) -> None:
    raw = _raw(example)
    assert (raw["apiVersion"], raw["kind"]) == ("v1", "List")
    seen = set()
    for item in raw["items"]:
        meta = item["metadata"]
        assert {"name", "uid", "resourceVersion", "creationTimestamp"} <= meta.keys()
        assert "managedFields" not in meta
        seen.add(meta["uid"])
    assert len(seen) == len(raw["items"])


@each
def test_objects_fit_the_schemas(example: Path) -> None:
    """The schemas come from a real API server and know every field."""
    for item in _raw(example)["items"]:
        schema = _schema(item["apiVersion"], item["kind"])
        if schema is not None:
            wrong = [f"{error.json_path}: {error.message}" for error in schema.iter_errors(item)]
            assert wrong == [], item["metadata"]["name"]


@each
def test_snapshot_is_read_without_a_word(example: Path) -> None:
    snapshot = _read(example)
    assert 3 <= len(snapshot.nodes) <= 12
    assert sum(len(entry.devices) for entry in snapshot.slices) >= 3
    assert snapshot.notes == ()
    assert snapshot.release is not None


@each
def test_objects_refer_to_each_other(example: Path) -> None:
    """Claims hold published devices, once; reservations, owners and nodes exist."""
    snapshot = _read(example)
    published = {(entry.driver, entry.pool.name, device.name) for entry in snapshot.slices for device in entry.devices}
    held: set[Any] = set()
    pods = {pod.metadata.uid: pod for pod in snapshot.pods.values()}
    for claim in snapshot.claims.values():
        if claim.allocation is None:
            continue
        assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        for result in claim.allocation.results:
            assert tuple(result.device) in published
            if not result.share_id:
                assert result.device not in held, "a device is held twice"
                held.add(result.device)
        for consumer in claim.reserved_for:
            pod = pods[consumer.uid]
            assert pod.metadata.name == consumer.name
            assert pod.node_name in snapshot.nodes
            selector = claim.allocation.node_selector
            assert selector is None or selector.matches(snapshot.nodes[pod.node_name])
        owner = claim.metadata.controller()
        assert owner is None or pods[owner.uid].metadata.name == owner.name
    for pod in snapshot.pods.values():
        for entry, name in pod.claim_statuses.items():
            assert name is not None
            assert (pod.metadata.namespace, name) in snapshot.claims, f"{pod.key}: {entry}"


@each
def test_selectors_compile_and_read_names_that_exist(example: Path) -> None:
    snapshot = _read(example, with_manifest=True)
    environment = Environment.for_release(str(snapshot.release))
    have = _published_names(snapshot)
    read: set[str] = set()
    for expression in _expressions(snapshot):
        assert compile_expression(environment, expression).max_cost <= COST_LIMIT
        read |= {f"{domain}/{name}" for domain, name in _READ.findall(expression)}
    for claim in _claims(snapshot):
        read |= {constraint.match_attribute for constraint in claim.constraints if constraint.match_attribute}
    assert read - have == ABSENT.get(example.name, set())
    drivers = {entry.driver for entry in snapshot.slices}
    for device_class in snapshot.classes.values():
        named = {driver for text in device_class.selectors for driver in _DRIVER.findall(text or "")}
        assert named <= drivers | SILENT.get(example.name, set())


@functools.cache
def _schema(api_version: str, kind: str) -> Draft202012Validator | None:
    group = api_version.replace("/", "_") if "/" in api_version else f"core_{api_version}"
    file = SCHEMAS / f"{group}_{kind}.json"
    if not file.exists():
        assert kind in ("Node", "Event", "Namespace"), f"no schema for {api_version} {kind}"
        return None
    return Draft202012Validator(json.loads(file.read_text()))


def _raw(example: Path) -> dict[str, Any]:
    loaded = yaml.load(_snapshot_file(example).read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert isinstance(loaded, dict)
    return loaded


def _snapshot_file(example: Path) -> Path:
    return next(path for path in example.iterdir() if path.name in SNAPSHOTS)


def _read(example: Path, *, with_manifest: bool = False) -> Snapshot:
    paths = [str(_snapshot_file(example))]
    if with_manifest:
        paths += [str(path) for path in example.iterdir() if path.name in MANIFESTS]
    return read_snapshot(paths)


def _claims(snapshot: Snapshot) -> Iterator[ResourceClaim]:
    yield from snapshot.claims.values()
    template: ResourceClaimTemplate
    for (namespace, name), template in snapshot.templates.items():
        yield template.claim(name, namespace)


def _expressions(snapshot: Snapshot) -> Iterator[str]:
    for device_class in snapshot.classes.values():
        yield from (text for text in device_class.selectors if text)
    for claim in _claims(snapshot):
        for entry in claim.requests:
            for spec in entry.alternatives():
                yield from (text for text in spec.selectors if text)


def _published_names(snapshot: Snapshot) -> set[str]:
    """Attributes and capacities of all devices, with their domain."""
    names: dict[str, set[str]] = defaultdict(set)
    for entry in snapshot.slices:
        for device in entry.devices:
            names[entry.driver].update((*device.attributes, *device.capacity))
    return {name if "/" in name else f"{driver}/{name}" for driver, table in names.items() for name in table}
