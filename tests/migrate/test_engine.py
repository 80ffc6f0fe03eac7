"""The engine: all or nothing per object, new objects in their place and style, names, and what is left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.changes import Append, Change, Delete, Set
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate import make_edits
from kubectl_dra.migrate.engine import MIGRATIONS, MigrationJob, migrate
from kubectl_dra.migrate.model import (
    Migration,
    MigrationReport,
    MigrationSettings,
    NewObject,
    Note,
    ObjectPlan,
    PlanSurroundings,
    Step,
)
from kubectl_dra.migrate.reading import evidence, relevant
from kubectl_dra.migrate.reverse.run import reverse
from tests.migrate.runs import after, assert_reversible, catalogue, run, settings

_, DEVICE_PLUGINS, ELSEWHERE, _ = MIGRATIONS


def made_by(*changes: Change, new: tuple[str, ...] = (), safety: Any = "safe", kind: str = "Pod") -> Migration:
    """A migration that makes the changes in objects of a kind that are not marked yet, and adds claims."""

    def plan(raw: Mapping[str, Any], surroundings: PlanSurroundings, how: MigrationSettings) -> ObjectPlan:
        if raw["kind"] != kind or raw.get("done"):
            return ObjectPlan()
        objects = tuple(NewObject("MIG103", claim(name), "it is needed", safety) for name in new)
        mark = Set(("done",), True)
        step = Step("MIG101", ("spec",), "it must", (*changes, mark), safety)
        return ObjectPlan((step,), objects, (Note("MIG131", ("spec",), "know this"),))

    return Migration("test", plan)


def claim(name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def sorts(report: MigrationReport) -> list[tuple[str, str]]:
    return [(item.sort, item.code) for item in report.items()]


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: gpu}\nspec:\n  a: 1\n"
ADDED = """\
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: c
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
"""


def test_new_objects_follow_the_document_that_needs_them() -> None:
    one = (made_by(new=("c",)),)
    assert after(POD, migrations=one) == POD + "done: true\n" + ADDED
    assert after(POD + "# end\n", migrations=one) == POD + "done: true\n# end\n" + ADDED
    assert after(POD + "---\nkind: X\napiVersion: v1\n", migrations=one) == (
        POD + "done: true\n" + ADDED + "---\nkind: X\napiVersion: v1\n"
    )
    assert after(POD + "...\n", migrations=one) == POD + "done: true\n" + ADDED + "...\n"
    assert after(POD.removesuffix("\n"), migrations=one) == (POD + "done: true\n" + ADDED).removesuffix("\n")
    crlf = POD.replace("\n", "\r\n")
    assert after(crlf, migrations=one) == (POD + "done: true\n" + ADDED).replace("\n", "\r\n")


def test_comments_behind_a_blank_line_stay_with_what_follows() -> None:
    one = (made_by(new=("c",)),)
    following = "\n# about X\n---\nkind: X\napiVersion: v1\n"
    assert after(POD + following, migrations=one) == POD + "done: true\n" + ADDED + following
    assert after(POD + "# own\n\n# vim: et\n", migrations=one) == (
        POD + "done: true\n# own\n" + ADDED + "\n# vim: et\n"
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_bytes_keep_their_encoding(encoding: str, newline: str) -> None:
    one = (made_by(new=("c",)),)
    (file,) = run(POD.replace("\n", newline).encode(encoding), migrations=one).files
    assert file.text is not None
    expected = (POD + "done: true\n" + ADDED).replace("\n", newline)
    assert file.text.data == expected.encode(encoding)


def test_names_that_are_wanted_twice_are_told_apart_in_the_first_run() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
    )
    found = after(f"{text}---\n{text.replace('gpu: 1', 'gpu: 2')}", migrations=(DEVICE_PLUGINS,))
    assert found.count("resourceClaimTemplateName: p-gpu}") == found.count("resourceClaimTemplateName: p-gpu-2}") == 1
    assert after(found, migrations=(DEVICE_PLUGINS,)) == found


def sibling(name: str, amount: int = 1, kind: str = "Pod", namespace: str = "") -> str:
    space = f", namespace: {namespace}" if namespace else ""
    spec = f"{{containers: [{{name: a, image: x, resources: {{limits: {{nvidia.com/gpu: {amount}}}}}}}]}}"
    if kind == "Pod":
        return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{space}}}\nspec: {spec}\n"
    return (
        f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}{space}}}\nspec: {{template: {{spec: {spec}}}}}\n"
    )


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_pods_of_a_file_and_namespace_that_ask_alike_share_a_template(version: str) -> None:
    pods = (sibling("a"), sibling("b"), sibling("c", 2), sibling("d", namespace="x"), sibling("e", 2))
    found = after("---\n".join(pods), migrations=(DEVICE_PLUGINS,), version=version)
    names = re.findall(r"resourceClaimTemplateName: ([a-z-]+)", found)
    assert names == ["a-gpu", "a-gpu", "c-gpu", "d-gpu", "c-gpu"]
    assert found.count("kind: ResourceClaimTemplate\n") == 3
    assert after(found, migrations=(DEVICE_PLUGINS,), version=version) == found


def test_workloads_and_pods_of_other_files_have_templates_of_their_own() -> None:
    found = after(
        "---\n".join((sibling("a", kind="Deployment"), sibling("b", kind="Deployment"))), migrations=(DEVICE_PLUGINS,)
    )
    assert re.findall(r"resourceClaimTemplateName: ([a-z-]+)", found) == ["a-gpu", "b-gpu"]


def test_a_template_is_added_beside_the_first_pod_that_can_be_changed() -> None:
    repeated = sibling("a").replace("name: a, image: x", "name: a, image: x, tty: true, tty: false")
    found = after("---\n".join((repeated, sibling("b"), sibling("c"))), migrations=(DEVICE_PLUGINS,))
    assert found.count("kind: ResourceClaimTemplate\n") == 1
    assert found.startswith(repeated)
    names = re.findall(r"resourceClaimTemplateName: ([a-z-]+)", found)
    assert len(set(names)) == 1 and len(names) == 2
    assert f"  name: {names[0]}\n" in found


def test_new_objects_have_the_style_of_the_file() -> None:
    text = 'apiVersion: "v1"\nkind: "Pod"\nmetadata:\n    name: "gpu"\nspec:\n    l:\n      - "a"\n'
    assert after(text, migrations=(made_by(new=("c",)),)).endswith(
        'metadata:\n    name: "c"\nspec:\n    devices:\n        requests:\n          - name: "gpu"\n'
        '            exactly:\n                deviceClassName: "gpu.nvidia.com"\n'
    )


def test_an_item_of_a_list_gets_them_into_the_list() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod]}, indent=2)
    result = after(text, migrations=(made_by(new=("c",)),))
    assert json.loads(result)["items"] == [{**pod, "done": True}, claim("c")]
    block = "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Pod\n    gpu: 1 # one\n# end\n"
    assert after(block, migrations=(made_by(new=("c",)),)) == (
        "apiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: Pod\n    gpu: 1 # one\n    done: true\n"
        "  - apiVersion: resource.k8s.io/v1\n    kind: ResourceClaim\n    metadata:\n      name: c\n    spec:\n"
        "      devices:\n        requests:\n          - name: gpu\n            exactly:\n"
        "              deviceClassName: gpu.nvidia.com\n# end\n"
    )


def test_json_of_one_object_has_no_place_for_a_second() -> None:
    text = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu"}}'
    report = run(text, migrations=(made_by(new=("c",)),))
    assert sorts(report) == [("refusal", "MIG905")] and not report.changed
    # Without a new object it is changed as any other.
    assert json.loads(after(text, migrations=(made_by(),)))["done"] is True


def test_an_object_is_changed_as_a_whole_or_not_at_all() -> None:
    text = POD + "---\n" + POD.replace("name: gpu", "name: other").replace("  a: 1\n", "  a: |\n    x\n")
    report = run(text, migrations=(made_by(Set(("spec", "a"), "y"), new=("c",)),))
    assert sorted(sorts(report)) == [
        ("change", "MIG101"),
        ("note", "MIG131"),
        ("object", "MIG103"),
        ("refusal", "MIG904"),
    ]
    (file,) = report.changed
    assert file.text is not None
    assert_reversible(file)
    assert file.text.after.endswith("name: other}\nspec:\n  a: |\n    x\n")


def test_shared_anchors() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\ngpu: 1\nspec:\n  a: &a\n    limits: {x: 1}\n    keep: 1\n"
        "  b: *a # as a\n  c:\n    <<: *a\n"
    )
    both = made_by(Delete(("spec", "a", "limits")), Delete(("spec", "b", "limits")))
    assert run(text, migrations=(both,)).items("refusal")
    everywhere = made_by(*(Delete(("spec", key, "limits")) for key in "ab"))
    # The merged mapping would lose it too, and that is not wanted.
    assert not run(text, migrations=(everywhere,)).changed
    shorter = text.replace("  c:\n    <<: *a\n", "")
    assert after(shorter, migrations=(both,)) == shorter.replace("    limits: {x: 1}\n", "") + "done: true\n"


def test_unsafe_changes_wait_to_be_asked_for() -> None:
    unsafe = (made_by(new=("c",), safety="unsafe"),)
    report = run(POD, migrations=unsafe)
    assert not report.changed and report.open
    assert {item.sort for item in report.items()} == {"offer", "note"}
    assert after(POD, migrations=unsafe, unsafe=True) == POD + "done: true\n" + ADDED


def test_names_that_are_taken_are_refused() -> None:
    text = POD + "---\n" + ADDED.removeprefix("---\n")
    report = run(text, migrations=(made_by(new=("c",)),))
    assert sorts(report) == [("refusal", "MIG906")]


def test_copies_of_a_workload_in_other_files_may_use_the_same_name() -> None:
    report = run(POD, POD, migrations=(made_by(new=("c",)),))
    assert [file.text.after == POD + "done: true\n" + ADDED for file in report.changed if file.text] == [True, True]


def test_keys_that_are_there_twice() -> None:
    report = run(POD + "  a: 2\n", migrations=(made_by(Set(("spec", "a"), 3)),))
    assert sorts(report) == [("refusal", "MIG907")]
    assert "line 5 and 6" in report.items()[0].message


def test_objects_of_older_versions_are_added_as_such() -> None:
    result = after(POD, "v1beta1", migrations=(made_by(new=("c",)),))
    assert "apiVersion: resource.k8s.io/v1beta1\n" in result and "exactly" not in result


def test_templates_values_and_broken_files_are_refused_only_where_it_matters() -> None:
    texts = (
        "a: {{ .Values.x }}\nlimits: {nvidia.com/gpu: 1}\n",
        "a: {{ .Values.x }}\nimage: nvidia/cuda\n",
        "gpu:\n  resources:\n    limits: {nvidia.com/gpu: 1}\n",
        "gpu: 1\n",
        "a: [\nlimits: {nvidia.com/gpu: 1}\n",
        "apiVersion: resource.k8s.io/v1beta1\nspec: [\n",
        "gpu: [\n",
    )
    report = run(*texts)
    assert [(file.name, [item.code for item in file.items]) for file in report.files] == [
        ("0.yaml", ["MIG901"]),
        ("2.yaml", ["MIG903"]),
        ("4.yaml", ["MIG902"]),
        ("5.yaml", ["MIG902"]),
    ]
    assert not report.changed and report.open
    assert len(report.notes) == 2


def test_a_template_that_counts_devices_by_a_key_of_its_kind_is_refused() -> None:
    text = "kind: DynamoGraphDeployment\nspec:\n  a: {{ .Values.x }}\n  limits:\n    gpu: %s\n"
    toleration = "kind: DynamoGraphDeployment\nspec:\n  a: {{ .Values.x }}\n  - key: nvidia.com/gpu\n"
    report = run(text % '"4"', text % "{{ .Values.gpus }}", text % "0", toleration)
    assert [(file.name, file.items[0].code, file.items[0].line) for file in report.files] == [
        ("0.yaml", "MIG901", 5),
        ("1.yaml", "MIG901", 5),
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (('{"kind": "Po',), "0.yaml:1:10: not valid YAML: the text in quotes that begins here does not end"),
        (("a: 1\n b: 2\n",), "0.yaml:2:3: not valid YAML"),
        (("",), "0.yaml: there is nothing in it"),
        (("---\n# only a comment\n", "a: ["), "0.yaml: there is nothing in it (and 1 more that cannot be read)"),
    ],
)
def test_a_run_that_could_read_nothing_is_an_error(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError) as error:
        run(*texts)
    assert str(error.value).startswith(message)
    inputs = [Input(f"{number}.yaml", True, text.encode()) for number, text in enumerate(texts)]
    with pytest.raises(InputError):
        reverse(inputs, MigrationJob(settings()))


def test_what_can_be_read_and_has_nothing_is_no_error() -> None:
    for texts in (("a: 1\n",), ("- a\n",), ("", "kind: x\n"), ("a: [", "- 1\n")):
        assert not run(*texts).files
    report = run("a: {{ .Values.x }}\n")
    assert not report.files and "template" in report.notes[0]


JSON_PATCH = """\
- op: replace
  path: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu
  value: 4
"""
INLINE = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
patches:
- path: other.yaml
- target: {kind: Deployment}
  patch: |-
    - op: remove
      path: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu
"""


def test_patches_that_name_resources_are_refused() -> None:
    plans = (ELSEWHERE,)
    assert sorts(run(JSON_PATCH, migrations=plans)) == [("refusal", "MIG908")]
    (item,) = run(INLINE, migrations=plans).items()
    assert (item.code, item.line, item.field) == ("MIG109", 6, "patches[1].patch")
    (item,) = run(INLINE.replace("remove", "move"), migrations=plans).items()
    assert (item.code, item.line, item.field) == ("MIG908", 6, "patches[1].patch")
    assert "nvidia.com/gpu" in item.message
    merged = "patchesStrategicMerge:\n- |-\n  limits: {amd.com/gpu: 1}\n"
    head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
    assert sorts(run(head + merged, migrations=plans)) == [("refusal", "MIG908")]
    flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec:\n  patches:\n"
    assert sorts(run(f"{flux}  - patch: 'limits: {{nvidia.com/gpu: 1}}'\n", migrations=plans)) == [
        ("refusal", "MIG908")
    ]
    assert not run(JSON_PATCH.replace("nvidia.com", "example.org"), migrations=plans).files
    assert not run(INLINE.replace("nvidia.com~1gpu", "cpu"), migrations=plans).files


BASE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      containers:
      - name: main
        image: a:1
        resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.mark.parametrize("patch_first", [True, False])
def test_a_patch_of_a_workload_is_migrated_with_its_base_only(patch_first: bool) -> None:
    patch = BASE.replace("        image: a:1\n", "").replace("gpu: 1", "gpu: 2")
    plans = (DEVICE_PLUGINS,)
    alone = run(patch, migrations=plans)
    assert not alone.changed and {item.sort for item in alone.items()} == {"offer"}
    assert any("patch" in item.message for item in alone.items("offer"))
    both = run(*((patch, BASE) if patch_first else (BASE, patch)), migrations=plans)
    assert len(both.changed) == 2 and not both.open
    # The patch has the names of what it patches, so that kustomize lays the one over the other.
    for file in both.changed:
        assert file.text is not None
        assert file.text.after.count("web-gpu") == 2
    plain = BASE.replace("nvidia.com/gpu", "cpu")
    assert run(patch, plain, migrations=plans).open


def test_the_prefilter_leaves_out_what_has_nothing_of_devices() -> None:
    for text in ("kind: Service\n", "metadata:\n  labels: {app.kubernetes.io/name: x}\nimage: a:1\n"):
        assert not relevant(text)
    for text in ("nvidia.com/gpu: 1", "requests.example.com/x: 1", "resourceClaims:", "- name: foo.example/y"):
        assert relevant(text)
    assert evidence("x: 1\nlimits:\n  nvidia.com/gpu: 1\n", catalogue(), "v1") == [(15, "nvidia.com/gpu")]
    assert evidence("apiVersion: resource.k8s.io/v1\n", catalogue(), "v1") == []
    assert evidence("image: nvidia.com/other:1\n", catalogue(), "v1") == []


def test_a_migration_that_fails_is_a_defect_and_changes_nothing() -> None:
    def broken(raw: Mapping[str, Any], surroundings: PlanSurroundings, how: MigrationSettings) -> ObjectPlan:
        raise KeyError("x")

    report = run(POD, migrations=(Migration("broken", broken),))
    assert not report.changed and report.defects == ("0.yaml: Pod gpu: broken: KeyError: 'x'",)


def test_claims_file(tmp_path: Path) -> None:
    target = tmp_path / "claims.yaml"
    inputs = [
        Input("a.yaml", True, POD.encode()),
        Input("b.yaml", True, POD.replace("name: gpu", "name: gpu-b").encode()),
    ]
    job = MigrationJob(settings(), claims_file=str(target), migrations=(made_by(new=("c",)),))
    report = migrate(inputs, job)
    assert report.claims is not None and report.claims.text is not None
    assert report.claims.text.after == ADDED.removeprefix("---\n")
    assert [file.name for file in report.changed] == ["a.yaml", "b.yaml", str(target)]
    target.write_text("# mine\napiVersion: v1\nkind: X\n")
    report = migrate(inputs, job)
    assert report.claims is not None and report.claims.text is not None
    assert report.claims.text.after == "# mine\napiVersion: v1\nkind: X\n" + ADDED
    target.write_text("{}")
    with pytest.raises(InputError):
        migrate(inputs, job)


def test_json_files_may_put_new_objects_elsewhere(tmp_path: Path) -> None:
    text = b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gpu"}}'
    job = MigrationJob(settings(), claims_file=str(tmp_path / "c.json"), migrations=(made_by(new=("c",)),))
    report = migrate([Input("a.json", True, text)], job)
    assert report.claims is not None and report.claims.text is not None
    assert json.loads(report.claims.text.after)["items"] == [claim("c")]


def test_added_items_of_lists_stand_beside_what_is_there() -> None:
    text = "apiVersion: v1\nkind: Pod\ngpu: 1\nspec:\n  l:\n    - a # one\n    # two\n  m: []\n"
    both = made_by(Append(("spec", "l"), {"b": 1}), Append(("spec", "m"), "c"))
    assert after(text, migrations=(both,)) == (
        "apiVersion: v1\nkind: Pod\ngpu: 1\nspec:\n  l:\n    - a # one\n    # two\n    - b: 1\n"
        "  m:\n    - c\ndone: true\n"
    )


def test_objects_of_a_stream_of_json_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # To try them one by one takes minutes where there are many.
    monkeypatch.setattr(make_edits, "made", None)
    pod = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p%d"}, "spec": {"containers": [{"name": "c", '
    pod += '"image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}\n'
    report = run("".join(pod % number for number in range(20)), migrations=MIGRATIONS)
    assert {item.code for item in report.items("refusal")} == {"MIG905"} and len(report.items("refusal")) == 20
    assert not report.changed
