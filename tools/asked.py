"""A question as files and arguments, so that it can be asked again after the files were edited."""

from __future__ import annotations

import copy
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubectl_dra.cli.main import run as command
from tools.controlplane.objects import RESOURCE_API
from tools.recorder.recorded import RELEASE

JSON = dict[str, Any]


class Said(NamedTuple):
    """What a command wrote, and its exit code."""

    code: int
    out: str
    errors: str


@dataclass(frozen=True)
class Asked:
    """Files by name, each with its documents, and the words after ``kubectl dra``; a file is named as it is.

    ``cluster`` is the file that is the snapshot; other files are manifests that a user is about to apply.
    """

    name: str
    files: dict[str, list[JSON]]
    arguments: tuple[str, ...]
    cluster: str = "cluster.yaml"

    def objects(self) -> Iterator[JSON]:
        """All objects of all files, those in lists as well."""
        for documents in self.files.values():
            for document in documents:
                yield from document["items"] if _is_list(document) else (document,)

    def of(self, kind: str) -> list[JSON]:
        """The objects of a kind."""
        return [entry for entry in self.objects() if entry["kind"] == kind]

    def add(self, entry: JSON) -> None:
        """One more object in the cluster."""
        documents = self.files[self.cluster]
        for kind in (f"{entry['kind']}List", "List"):
            for document in documents:
                if document["kind"] == kind:
                    document["items"].append(entry)
                    return
        documents.append(entry)

    def remove(self, entry: JSON) -> None:
        """The object is in no file any more."""
        for documents in self.files.values():
            documents[:] = [document for document in documents if document is not entry]
            for document in documents:
                if _is_list(document):
                    document["items"] = [other for other in document["items"] if other is not entry]

    def copied(self, arguments: Sequence[str] = ()) -> Asked:
        """The same with files of its own, to be edited, and further arguments."""
        return Asked(self.name, copy.deepcopy(self.files), (*self.arguments, *arguments), self.cluster)

    def ask(self, *arguments: str, folder: Path | None = None) -> Said:
        """Runs the command, with the files in a folder."""
        if folder is None:
            with tempfile.TemporaryDirectory() as scratch:
                return self.ask(*arguments, folder=Path(scratch))
        for name, documents in self.files.items():
            (folder / name).write_text("\n---\n".join(json.dumps(document) for document in documents))
        words = [str(folder / word) if word in self.files else word for word in self.arguments]
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            code = command([*words, *arguments])
        return Said(code, out.getvalue(), errors.getvalue())

    def answer(self, *arguments: str) -> JSON:
        """The answer as data; of several questions the list of their answers."""
        said = self.ask(*arguments, "-o", "json")
        assert said.code in (0, 1, 3), f"{self.name}: exit {said.code}: {said.errors}"
        found: JSON = json.loads(said.out)
        return found


def _is_list(document: JSON) -> bool:
    return "items" in document and str(document["kind"]).endswith("List")


def of_example(folder: Path, arguments: Sequence[str]) -> Asked:
    """An example's question."""
    files = {
        path.name: [document for document in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if document]
        for path in sorted(folder.iterdir())
        if path.suffix in (".yaml", ".json")
    }
    (cluster,) = [name for name in files if name.startswith("cluster.")]
    return Asked(folder.name, files, tuple(arguments), cluster)


def of_recording(case: JSON) -> Asked:
    """The question of a line of ``pods.jsonl.gz`` and its like."""
    files = {"cluster.yaml": [case["snapshot"]]}
    arguments = ["explain", "--snapshot", "cluster.yaml", "--complete"]
    if isinstance(case["pod"], str):
        namespace, _, name = case["pod"].partition("/")
        arguments += [f"pod/{name}", "-n", namespace]
    else:
        files["pod.json"] = [case["pod"]]
        arguments += ["-f", "pod.json"]
    if "schedulerConfig" in case:
        files["scheduler.json"] = [case["schedulerConfig"]]
        arguments += ["--scheduler-config", "scheduler.json"]
    if "release" in case:
        arguments += ["--kubernetes-version", case["release"]]
    if case.get("gates"):
        arguments += ["--feature-gates", ",".join(f"{name}=true" for name in case["gates"])]
    return Asked(case["id"], files, tuple(arguments))


def of_allocation(case: JSON) -> Asked:
    """The question of a line of ``alloc.jsonl.gz``: a pod with its claims, in the cluster that the allocator had."""
    release = case.get("release", RELEASE)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default", "uid": "uid-pod"},
        "spec": {
            "containers": [{"name": "main", "image": "example.com/none"}],
            "resourceClaims": [
                {"name": f"entry-{number}", "resourceClaimName": claim["metadata"]["name"]}
                for number, claim in enumerate(case["claims"])
            ],
        },
        "status": {"phase": "Pending"},
    }
    allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", **node, "status": {**node.get("status", {}), "allocatable": allocatable}}
        for node in case["nodes"]
    ]
    tables = {
        ("v1", "Node"): nodes,
        ("v1", "Pod"): [pod],
        (RESOURCE_API, "ResourceSlice"): case["slices"],
        (RESOURCE_API, "DeviceClass"): case["classes"],
        (RESOURCE_API, "ResourceClaim"): [*case["claims"], *(case["allocatedClaims"] or ())],
        (RESOURCE_API, "ResourceClaimTemplate"): [],
    }
    lists: list[JSON] = [
        {
            "apiVersion": version,
            "kind": f"{kind}List",
            "items": [{"apiVersion": version, "kind": kind, **entry} for entry in entries or ()],
        }
        for (version, kind), entries in tables.items()
    ]
    gates = []
    for change in case["features"]:
        gates.append(f"DRA{change[1:].removeprefix('DRA')}={'false' if change[0] == '-' else 'true'}")
    arguments = ["explain", "pod/pod", "-n", "default", "--snapshot", "cluster.yaml", "--kubernetes-version", release]
    arguments += ["--feature-gates", ",".join(gates)] if gates else []
    return Asked(case["id"], {"cluster.yaml": lists}, tuple(arguments))
