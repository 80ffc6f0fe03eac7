"""What a cluster has already, given once more as its authors would apply it, changes no answer.

Each object of an example or of a recorded cluster is stripped to what a person would have written, without status and
without what the server, the scheduler and controllers add, and given with ``-f``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from tests.explain.authored import authored
from tests.explain.commands import without_commands
from tests.ran import ran

JSON = dict[str, Any]
ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "explain").glob("*/cluster.yaml"))
RECORDED = ROOT / "tests" / "conformance" / "data"
CORPORA = ("pods", "scheduled", "gangs", "pod-releases", "pod-profiles", "pod-node-resources")
FLAGS = ("--kubernetes-version", "--feature-gates", "--scheduler-config")

WAYS: Mapping[str, Callable[[Mapping[str, Any]], JSON]] = {
    "as its author applied it": authored,
    "without its labels": lambda raw: authored(raw, labels=False),
    "as it is": dict,
}
"""How objects are given."""


class Cluster:
    """A cluster, as a file and as objects, and what else is asked with."""

    def __init__(self, name: str, file: Path, objects: Sequence[JSON], flags: Sequence[str], folder: Path) -> None:
        self.name, self.file, self.flags, self._folder = name, file, flags, folder
        self.objects = [raw for raw in objects if raw["kind"] != "Event"]

    def subjects(self, random: Random) -> list[JSON]:
        """Its pods and claims, in any order."""
        found = [raw for raw in self.objects if raw["kind"] in ("Pod", "ResourceClaim")]
        random.shuffle(found)
        return found

    def answer(self, raw: JSON | None, given: Sequence[JSON] | None = None) -> tuple[int, Any]:
        """What is said of an object, or of what is given where none is named."""
        words = ["explain", "--snapshot", str(self.file), *self.flags, "-o", "json"]
        if raw is not None:
            meta = raw["metadata"]
            words += [
                f"{'pod' if raw['kind'] == 'Pod' else 'claim'}/{meta['name']}",
                "-n",
                meta.get("namespace", "default"),
            ]
        if given is not None:
            file = self._folder / "manifest.json"
            file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": given}))
            words += ["-f", str(file)]
        code, out, errors = ran(*words)
        assert out, f"{self.name}: {errors}"
        return code, without_commands(json.loads(out))

    def check(self, raw: JSON, ways: Sequence[str]) -> None:
        """All objects are given once more in these ways, and the one in question by itself."""
        meta = raw["metadata"]
        asked = f"{self.name}: {raw['kind']} {meta.get('namespace', 'default')}/{meta['name']}"
        before = self.answer(raw)
        for way in ways:
            given = [WAYS[way](each) for each in self.objects]
            assert self.answer(raw, given) == before, f"{asked}: all {way}"
            alone = {**WAYS[way](raw)}
            alone["metadata"] = {"namespace": "default", **alone["metadata"]}
            assert self.answer(None, [alone]) == before, f"{asked}: alone {way}"


def example(folder: Path, scratch: Path) -> Cluster:
    words = (folder / "command").read_text().split() if (folder / "command").exists() else []
    flags = [word for at, name in enumerate(words) if name in FLAGS for word in words[at : at + 2]]
    documents = yaml.load_all((folder / "cluster.yaml").read_text(), Loader=yaml.CSafeLoader)
    objects = [each for one in documents if one for each in one.get("items", [one])]
    return Cluster(folder.name, folder / "cluster.yaml", objects, flags, scratch)


def recorded(corpus: str, scratch: Path, every: int = 1) -> Iterator[Cluster]:
    with gzip.open(RECORDED / f"{corpus}.jsonl.gz", "rt") as lines:
        for number, line in enumerate(lines):
            case = json.loads(line)
            if number % every or "snapshot" not in case:
                continue
            file = scratch / "cluster.json"
            file.write_text(json.dumps(case["snapshot"]))
            flags = ["--kubernetes-version", case["release"].lstrip("v")] if "release" in case else []
            flags += [word for gate in case.get("gates", ()) for word in ("--feature-gates", f"{gate}=true")]
            if "schedulerConfig" in case:
                (scratch / "scheduler.json").write_text(json.dumps(case["schedulerConfig"]))
                flags += ["--scheduler-config", str(scratch / "scheduler.json")]
            yield Cluster(f"{corpus}:{case.get('id', number)}", file, case["snapshot"]["items"], flags, scratch)


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=lambda number: EXAMPLES[number].name)
def test_examples(number: int, tmp_path: Path) -> None:
    cluster = example(EXAMPLES[number], tmp_path)
    first = cluster.subjects(Random(number))[0]
    cluster.check(first, [list(WAYS)[number % len(WAYS)]])


@pytest.mark.parametrize("corpus", ["pods", "scheduled"])
def test_recorded_clusters(corpus: str, tmp_path: Path) -> None:
    for number, cluster in enumerate(recorded(corpus, tmp_path, every=8)):
        first = next(iter(cluster.subjects(Random(number))), None)
        if first is not None:
            cluster.check(first, [list(WAYS)[number % len(WAYS)]])


@pytest.mark.slow
@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_all_subjects_of_examples(folder: Path, tmp_path: Path) -> None:
    cluster = example(folder, tmp_path)
    for number, raw in enumerate(cluster.subjects(Random(0))):
        cluster.check(raw, [list(WAYS)[number % len(WAYS)]])


@pytest.mark.exhaustive
@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_all_subjects_of_examples_in_all_ways(folder: Path, tmp_path: Path) -> None:
    cluster = example(folder, tmp_path)
    for raw in cluster.subjects(Random(0)):
        cluster.check(raw, list(WAYS))


@pytest.mark.exhaustive
@pytest.mark.parametrize("corpus", CORPORA)
def test_all_recorded_clusters(corpus: str, tmp_path: Path) -> None:
    for number, cluster in enumerate(recorded(corpus, tmp_path)):
        for raw in cluster.subjects(Random(number))[:4]:
            cluster.check(raw, list(WAYS))
