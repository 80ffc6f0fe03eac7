"""Names of strangers in every name field: what is printed to be pasted runs kubectl, with words that are no flags."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_dra.api.neighbour_kinds import kind_here
from kubectl_dra.cluster.snapshot import EVERY_KIND
from kubectl_dra.explain.question.what_if_flag import WhatIfChange
from kubectl_dra.manifests.inputs import HELMED, KUSTOMIZED, arguments
from kubectl_dra.report.explain_commands import Invocation, supposing
from tests.cli.conftest import Dra, write_list
from tests.cli.test_pasted import HOSTILE
from tools.examples import EXAMPLES, FIT
from tools.fuzz.examples import examples
from tools.fuzz.names import renamed_everywhere
from tools.fuzz.odd_fields import ExampleField, fields_of
from tools.pasted import SHELLS, executed, printed

RECORDED: Final = Path(__file__).parents[1] / "conformance" / "data"
NAMING: Final = re.compile(
    r"(name|namespace|names|key|driver|pool|device|request|kind|uid|container|hostname|controller|provisioner|attacher"
    r"|handler|host|nodeID|topologyKeys|resourceName|requests)$",
    re.IGNORECASE,
)
"""The last part of a field that holds a name."""
OTHERS: Final = tuple(
    {"apiVersion": version, "kind": kind, "metadata": {"name": f"some-{kind.lower()}", "namespace": "ml"}, "spec": spec}
    for version, kind, spec in (
        ("apps/v1", "DaemonSet", {"selector": {"matchLabels": {"app": "driver"}}, "template": {"spec": {}}}),
        ("apps/v1", "ReplicaSet", {"selector": {"matchLabels": {"app": "a"}}}),
        ("apps/v1", "StatefulSet", {"serviceName": "s", "selector": {"matchLabels": {"app": "a"}}}),
        ("v1", "ReplicationController", {"selector": {"app": "a"}}),
        ("v1", "LimitRange", {"limits": [{"type": "Container"}]}),
        ("v1", "ServiceAccount", {}),
        ("v1", "ResourceQuota", {"hard": {"pods": "5"}, "scopes": []}),
        ("scheduling.k8s.io/v1alpha1", "Workload", {"controllerRef": {"kind": "Job", "name": "j"}, "podGroups": []}),
    )
)
"""Kinds that no example and no recorded cluster has."""


NEIGHBOURS: Final = yaml.safe_load((Path(__file__).parents[1] / "neighbours" / "objects.yaml").read_text())
"""Kinds of other layers."""


@cache
def _clusters() -> Sequence[Sequence[Any]]:
    """Our examples, and a recorded cluster for each kind that they do not have."""
    found = [[*examples()[0].items, *OTHERS, *NEIGHBOURS], *(example.items for example in examples())]
    known = {kind_here(item["kind"], item["apiVersion"]) for items in found for item in items}
    for name in ("pods", "pod-releases", "gangs"):
        with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt") as lines:
            for line in lines:
                items = json.loads(line)["snapshot"]["items"]
                if {item["kind"] for item in items} - known:
                    known |= {item["kind"] for item in items}
                    found.append(items)
    # Most fields are in a small one.
    return sorted(found, key=len)


@cache
def _name_fields() -> Sequence[tuple[Sequence[Any], ExampleField]]:
    fields = fields_of(_clusters())
    return [(items, field) for items, field in fields if isinstance(field.value, str) and _is_naming(field)]


def _is_naming(field: ExampleField) -> bool:
    words = [part for part in field.path if isinstance(part, str)]
    return bool(field.value) and words != ["kind"] and NAMING.search(words[-1]) is not None


def test_every_kind_has_name_fields() -> None:
    found = {kind_here(field.item["kind"], field.item["apiVersion"]) for _, field in _name_fields()}
    assert found >= {*EVERY_KIND}


def _only_kubectl(lines: Sequence[str]) -> None:
    lines = [*dict.fromkeys(lines)]
    for program in SHELLS:
        calls, other = executed(program, lines)
        assert not other
        assert len(calls) >= len(lines)
        for call in calls:
            flags = [word for word in call if word.startswith("-")]
            assert not [word for word in flags if "evil" in word or word.startswith("--server")], call
            assert not re.search(r"^-\d+$", " ".join(flags)), call


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_a_hostile_name_in_each_field(part: int, dra: Dra, tmp_path: Path) -> None:
    """One after the other, so that all that is printed about the other names is still there."""
    lines: list[str] = []
    snapshot = tmp_path / "its cluster;.json"
    tried = [*enumerate(_name_fields())][part::2]
    for number, (items, field) in tried:
        hostile = HOSTILE[number % len(HOSTILE)].format(number)
        changed = renamed_everywhere(items, {field.value: hostile})
        write_list(snapshot, changed)
        for words in (("explain", "-A", "--full"), ("drivers",)):
            ran = dra(*words, "--snapshot", str(snapshot))
            assert ran.code in (0, 1, 2, 3) and "defect" not in ran.err, (field.path, ran.err)
            lines += printed(ran.out)
    assert len(tried) > 20 and len(lines) > 50
    _only_kubectl(lines)


def _all_renamed(items: Sequence[Any]) -> list[Any]:
    names = [field.value for _, field in fields_of([items]) if isinstance(field.value, str)]
    names = [name for name in dict.fromkeys(names) if re.fullmatch(r"[a-z0-9][a-z0-9.-]*[a-z0-9]", name)]
    fields = {field.value for _, field in fields_of([items]) if isinstance(field.value, str) and _is_naming(field)}
    chosen = [name for name in names if name in fields]
    hostile = {name: HOSTILE[number % len(HOSTILE)].format(number) for number, name in enumerate(chosen)}
    renamed: list[Any] = renamed_everywhere(items, hostile)
    return renamed


def test_a_request_that_no_claim_can_have_is_in_no_command() -> None:
    asked = Invocation(("kubectl", "dra", "explain", "pod/a"))
    for request, misnamed in (("gpu", ""), ("gpu/large", ""), ("--server=evil", '"--server=evil"'), ("a/-b", '"-b"')):
        command = supposing((WhatIfChange(request, "toleration", "k:NoSchedule"),), asked)
        assert command is not None and command.misnamed == misnamed
    several = supposing((WhatIfChange("", "free", "ml/a,ml/b"),), asked)
    assert several is not None and several.misnamed == ""


@pytest.mark.parametrize("name", ["all-held", "prepare-fails", "taint-rule-evicts-all", "mixed-fleet"])
def test_all_names_are_hostile(name: str, dra: Dra, tmp_path: Path) -> None:
    """Together, in all that commands print of a cluster: also those that would write."""
    (source,) = (EXAMPLES / name).glob("cluster.*")
    items = json.loads(json.dumps(yaml.load(source.read_text(), Loader=yaml.CSafeLoader)["items"], default=str))
    items = _all_renamed(items)
    snapshot = tmp_path / "--its cluster;.json"
    write_list(snapshot, items)
    devices = [line for line in dra("devices", "-o", "name", "--snapshot", str(snapshot)).out.splitlines() if line]
    assert devices
    questions: list[tuple[str, ...]] = [
        ("explain",),
        ("explain", "-A", "--full"),
        ("claims",),
        ("devices",),
        ("top", "owners"),
        ("drivers",),
        ("taint", "--list"),
        ("taint", "evil:NoExecute", "--dry-run=client", "--", devices[0]),
        ("fit", "-f", str(FIT / "as-many-as-fit" / "manifest.yaml")),
        ("migrate", "plan", "--output-dir", str(tmp_path / "plan")),
    ]
    ran = [dra(*words[:1], "--snapshot", str(snapshot), *words[1:]) for words in questions]
    assert not [each.err for each in ran if "defect" in each.err]
    page = tmp_path / "plan" / "README.md"
    lines = [line for each in ran for line in printed(each.out)]
    lines += [line for line in printed(page.read_text()) if "DIR" not in line] if page.exists() else []
    assert lines
    assert not [line for line in lines if "evil.example" in line]
    _only_kubectl(lines)


PLUGIN_POD: Final = """apiVersion: v1
kind: Pod
metadata: {{name: "{0}", namespace: "{0}"}}
spec:
  containers: [{{name: "{0}", image: i, resources: {{limits: {{nvidia.com/gpu: 1}}}}}}]
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {{name: "{0}"}}
spec: {{spec: {{devices: {{requests: [{{name: "{0}", deviceClassName: "{0}"}}]}}}}}}
"""


COMMAND: Final = re.compile(r"kubectl dra migrate .*\.yaml'?(?= |$)")


def test_what_lint_and_migrate_say_to_run(dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of files are strangers' as well."""
    monkeypatch.chdir(tmp_path)
    commands: list[str] = []
    for number, hostile in enumerate(HOSTILE):
        name = hostile.format(number).replace("/", "_") + ".yaml"
        Path(name).write_text(PLUGIN_POD.format("x"))
        for words in (("lint", "-o", "json"), ("lint",), ("migrate",), ("migrate", "--diff")):
            ran = dra(*words, "--", name)
            assert ran.code in (0, 1) and "defect" not in ran.err
            if words == ("lint", "-o", "json"):
                found = ran.json["findings"]
                titles = [
                    finding["fix"]["text"] for finding in found if "kubectl dra migrate" in finding["fix"]["text"]
                ]
                commands += [command[0] for title in titles if (command := COMMAND.search(title))]
            else:
                assert "[2J" not in ran.out
        Path(name).unlink()
    assert len(commands) >= len(HOSTILE)
    _only_kubectl(commands)
    assert not [line for line in commands if shlex.split(line)[3].startswith("-")]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("-x.yaml", ("./-x.yaml",)),
        ("a b.yaml", ("a b.yaml",)),
        (f"-chart/{HELMED}", ("./-chart",)),
        (f"over lay/{KUSTOMIZED}", ("-k", "over lay")),
        ("<stdin>", ("-",)),
    ],
)
def test_how_an_input_is_given_again(name: str, words: tuple[str, ...]) -> None:
    assert arguments(name) == words
