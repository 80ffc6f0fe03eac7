"""Case files: small clusters, a question, and what ``kubectl dra explain`` says. See tests/explain/cases/README.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import KINDS
from tools.asked import Asked

FOLDER = Path(__file__).parents[1] / "tests" / "explain" / "cases"
THREADS = FOLDER / "threads"
VERSIONS = {"resource.k8s.io/v1": ("ResourceSlice", "DeviceClass", "ResourceClaim", "ResourceClaimTemplate")}
API_VERSION = {kind: version for version, kinds in VERSIONS.items() for kind in kinds}
API_VERSION |= {"DeviceTaintRule": "resource.k8s.io/v1beta2"}
FILE_KEYS = {"about", "cluster", "cases"}
CASE_KEYS = {"name", "cluster", "without", "unseen", "explain", "manifest", "flags", "expect"}
EXPECT_KEYS = {"verdict", "causes", "answer", "evidence", "fix", "proof", "notes", "ways", "text", "never", "exit"}
JSON = dict[str, Any]


class Case(NamedTuple):
    """One case of a file, with the objects of the file's clusters and its own."""

    file: str
    name: str
    objects: list[JSON]
    raw: JSON


def load_yaml(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def objects_of(entries: Sequence[Any]) -> Iterator[JSON]:
    """The objects of a ``cluster`` list: an entry that is text names a file of clusters/."""
    for entry in entries:
        if isinstance(entry, str):
            yield from objects_of(load_yaml(FOLDER / "clusters" / f"{entry}.yaml"))
        else:
            yield {"apiVersion": API_VERSION.get(entry["kind"], "v1"), **entry}


def _key(entry: Mapping[str, Any]) -> str:
    meta = entry["metadata"]
    space = f"{meta['namespace']}/" if "namespace" in meta else ""
    return f"{entry['kind']}/{space}{meta['name']}"


def cases_of(path: Path) -> Iterator[Case]:
    raw = load_yaml(path)
    assert raw.keys() <= FILE_KEYS, f"{path.name}: unknown {raw.keys() - FILE_KEYS}"
    for case in raw["cases"]:
        assert case.keys() <= CASE_KEYS, f"{path.name}: unknown {case.keys() - CASE_KEYS}"
        assert case["expect"].keys() <= EXPECT_KEYS, f"{path.name}: unknown {case['expect'].keys() - EXPECT_KEYS}"
        kept = {_key(entry): entry for entry in objects_of([*raw.get("cluster", ()), *case.get("cluster", ())])}
        for name in case.get("without", ()):
            del kept[name]
        yield Case(path.stem, case["name"], list(kept.values()), case)


FILES = sorted(FOLDER.glob("*.yaml")) + sorted(THREADS.glob("*.yaml"))
CASES = [case for path in FILES for case in cases_of(path)]
SLOW = ("search-too-slow",)
"""Files in which an answer takes seconds. What looks at all texts or orders need not wait for them again and again."""
QUICK_CASES = [case for case in CASES if case.file not in SLOW]


def asked(case: Case) -> Asked:
    """The question of the case. What is not in ``unseen`` was listed completely."""
    unseen = case.raw.get("unseen", ())
    further = {entry["kind"]: entry["apiVersion"] for entry in case.objects if entry["kind"] not in KINDS}
    lists: list[JSON] = [
        {
            "apiVersion": further.get(kind) or API_VERSION.get(kind, "v1"),
            "kind": f"{kind}List",
            "items": [entry for entry in case.objects if entry["kind"] == kind],
        }
        for kind in (*KINDS, *further)
        if kind not in unseen
    ]
    # Kinds that are read only where a pod needs them.
    listed = [kind for kind in SCHEDULING_KINDS if kind not in unseen]
    items = [entry for entry in case.objects if entry["kind"] in SCHEDULING_KINDS]
    lists.append({"apiVersion": "v1", "kind": "List", "kubectl-dra": {"read": listed}, "items": items})
    files = {"cluster.yaml": lists}
    words = ["explain", "--snapshot", "cluster.yaml", *case.raw.get("flags", ())]
    if "explain" in case.raw:
        words.append(case.raw["explain"])
    if "manifest" in case.raw:
        files["manifest.yaml"] = list(objects_of(case.raw["manifest"]))
        words += ["-f", "manifest.yaml"]
    return Asked(f"{case.file}: {case.name}", files, tuple(words))


def run_case(case: Case, folder: Path, output: str, *, full: bool = True) -> tuple[int, str]:
    """The command on the case, with its files in a folder: exit code and output."""
    code, written, errors = asked(case).ask("-o", output, *(["--full"] if full else []), folder=folder)
    # Which pod answers for a workload is said beside the answer.
    asked_of_pod = case.raw.get("explain", "").partition("/")[0] in ("", "pod", "claim", "template")
    assert errors == "" or (not asked_of_pod and errors.startswith("note: ") and errors.count("\n") == 1)
    return code, written
