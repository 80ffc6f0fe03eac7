"""Placeholders, files that are cut off, and texts that only mention a resource: what is said, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MIGRATIONS, MigrationJob, migrate
from tests.migrate.runs import after, back, run, settings

DEVICE_PLUGINS = MIGRATIONS[1]

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - name: a
    image: registry.example.com/a:1
    resources:
      limits:
        nvidia.com/gpu: 1
"""


def said(text: str) -> list[tuple[str, str, str]]:
    found = run(text, migrations=MIGRATIONS).items()
    return [(item.sort, item.code, item.message + " " + item.way_out) for item in found]


# (value, code, part of what to do)
PLACEHOLDERS = [
    ("${GPUS}", "MIG114", "envsubst < FILE"),
    ('"${GPUS:-1}"', "MIG114", "envsubst < FILE"),
    ("$GPUS", "MIG114", "envsubst < FILE"),
    ("$(GPUS)", "MIG114", "kubectl kustomize DIR"),
    ('"{{ gpus }}"', "MIG114", "what its tool makes of it"),
    ("__GPUS__", "MIG114", "what its tool makes of it"),
    ("{{ .Values.gpus }}", "MIG901", "helm template CHART"),
    ("{{GPUS}}", "MIG901", "what its tool makes of it"),
    ("@GPUS@", "MIG901", "what its tool makes of it"),
    ("many", "MIG114", "Put the number in"),
]


@pytest.mark.parametrize(("value", "code", "how"), PLACEHOLDERS)
def test_a_placeholder_is_refused_with_a_way_to_fill_it_in(value: str, code: str, how: str) -> None:
    ((sort, found, message),) = said(POD.replace("gpu: 1", f"gpu: {value}"))
    assert (sort, found) == ("refusal", code)
    assert how in message


def test_a_line_that_is_a_placeholder_makes_a_template() -> None:
    ((_, code, message),) = said(POD.replace("    resources:", "    ${EXTRA}\n    resources:"))
    assert code == "MIG901" and "envsubst" in message


# (text, part of what is said)
CUT = [
    (POD.replace("gpu: 1\n", "gpu:"), "no number"),
    (POD.replace(": 1\n", ""), "a name without a number"),
    (POD.replace("kind: Pod\n", ""), "it has no kind"),
    (POD.replace("apiVersion: v1\n", ""), "it has no apiVersion"),
    (POD.replace("kind: Pod", "kind:"), "it has no kind"),
    ("apiVersion: v1\nkind: List\nitems:\n- spec: {x: {limits: {nvidia.com/gpu: 1}}}\n", "an item of the list"),
]


@pytest.mark.parametrize(("text", "part"), CUT)
def test_a_file_that_is_cut_off_is_not_nothing_to_migrate(text: str, part: str) -> None:
    found = said(text)
    assert [sort for sort, _, _ in found] == ["refusal"]
    assert part in found[0][2]


WORKFLOW = """\
on: push
jobs:
  test:
    steps:
    - run: |
        kubectl label node --all "nvidia.com/mig.config=all-1g.5gb"
        EXPECTED="nvidia.com/gpu"
"""
MENTIONS = [
    WORKFLOW,
    'dashboard: {"expr": "sum(request{resource=\\"nvidia.com/gpu\\"})"}\n',
    "# nvidia.com/gpu: 1\ntolerations: [{key: nvidia.com/gpu, operator: Exists}]\n",
    "- op: replace\n  path: /spec/template/spec/tolerations/0/key\n  value: nvidia.com/gpu\n",
    '[{"op": "add", "value": "nvidia.com/gpu", "path": "/spec/taints/-/key"}]\n',
    "nodes:\n  label: nvidia.com/gpu.present\n",
]


@pytest.mark.parametrize("text", MENTIONS)
def test_what_only_mentions_a_resource_is_not_refused(text: str) -> None:
    assert said(text) == []


def test_a_json_patch_that_writes_a_name_elsewhere_is_refused() -> None:
    text = (
        "- {op: add, path: /spec/tolerations/0/key, value: a}\n- {op: add, path: /spec/name, value: nvidia.com/gpu}\n"
    )
    ((sort, code, _),) = said(text)
    assert (sort, code) == ("refusal", "MIG908")


def test_a_script_that_writes_a_request_is_refused() -> None:
    text = f"{WORKFLOW}        kubectl apply -f - <<EOF\n        resources:\n          limits:\n"
    ((sort, code, _),) = said(f"{text}            nvidia.com/gpu: 1\n        EOF\n")
    assert (sort, code) == ("refusal", "MIG903")


def test_a_test_of_a_chart_is_noted() -> None:
    text = "suite: a\ntests:\n- set: {resources: {limits: {nvidia.com/gpu: 1}}}\n  asserts: [{isNull: {path: a}}]\n"
    ((sort, code, _),) = said(text)
    assert (sort, code) == ("note", "MIG126")


def test_equal_values_of_a_duplicate_key_are_not_in_the_way() -> None:
    volumes = "  volumes: [{name: x, emptyDir: {}}]\n"
    text = POD.replace("  containers:", f"{volumes}{volumes}  containers:")
    assert "claims:" in after(text, migrations=(DEVICE_PLUGINS,))
    other = text.replace("name: x", "name: y", 1)
    assert after(other, migrations=(DEVICE_PLUGINS,)) == other
    limits = POD.replace("        nvidia.com/gpu: 1\n", "        nvidia.com/gpu: 1\n" * 2)
    assert "nvidia.com/gpu: 1" not in after(limits, migrations=(DEVICE_PLUGINS,))


SECRET = "apiVersion: v1\nkind: Secret\nmetadata: \n  name: s   \nstringData: # later\n  hf_api_token: {{HF_TOKEN}}\n\n"


@pytest.mark.parametrize("texts", [(SECRET, POD), (POD, SECRET), (SECRET, POD, SECRET), (POD, SECRET, SECRET, POD)])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_document_with_bare_placeholders_stays_and_the_others_are_migrated(
    texts: tuple[str, ...], newline: str
) -> None:
    named = [text.replace("name: a}", f"name: a{number}}}") for number, text in enumerate(texts)]
    written = "---\n".join(named).replace("\n", newline)
    report = run(written, migrations=MIGRATIONS)
    result = after(written, migrations=MIGRATIONS)
    secrets = SECRET.replace("\n", newline)
    assert result.count(secrets) == texts.count(SECRET) == len(report.notes)
    assert all("{{HF_TOKEN}} is filled in later; the document that begins here" in note for note in report.notes)
    # Without these documents the others become the same.
    rest = "---\n".join(text for text in named if text != SECRET).replace("\n", newline)
    assert result.replace(f"---{newline}{secrets}", "").replace(f"{secrets}---{newline}", "") == after(
        rest, migrations=MIGRATIONS
    )
    assert not run(result, migrations=MIGRATIONS).changed
    undone, report = back(result, unsafe=False)
    assert "nvidia.com/gpu: 1" in undone and len(report.files) == 1 and not report.defects
    assert undone.count(SECRET.splitlines()[-2]) == result.count("{{HF_TOKEN}}")


def test_a_document_with_placeholders_that_asks_for_devices_is_refused_alone() -> None:
    blank = POD.replace("name: a", "name: b").replace("/a:1", "/a:{{TAG}}").replace("image: ", "image: {{HOST}}")
    report = run(f"{blank}---\n{POD}", migrations=MIGRATIONS)
    assert [(item.code, item.line) for item in report.items("refusal")] == [("MIG901", 10)]
    assert report.changed and not report.notes
    silenced = blank.replace("gpu: 1", "gpu: 1 # kubectl-dra: ignore[MIG901] by hand")
    assert not list(run(f"{silenced}---\n{POD}", migrations=MIGRATIONS).items("refusal"))


@pytest.mark.parametrize(
    "line",
    [
        "  a: {{ .Values.token }}",
        "  {{- if .Values.x }}\n  a: {{TOKEN}}\n  {{- end }}",
        "  a: {{TOKEN}}\n{{ end }}",
        "  a: {{TOKEN}}\n  {% if x %}",
        "  a: {{TOKEN}}\n  {# x #}",
        "  a: {{TOKEN}}\n...\nkind: Other",
        "  a: {{TOKEN}}\n  apiVersion: resource.k8s.io/v1",
        "  a: [",
    ],
)
def test_a_file_with_control_flow_or_broken_lines_stays_as_a_whole(line: str) -> None:
    text = f"{POD}---\napiVersion: v1\nkind: Secret\nstringData:\n{line}\n"
    report = run(text, migrations=MIGRATIONS)
    assert not report.changed
    assert [item.code for item in report.items("refusal")] == ["MIG902" if line == "  a: [" else "MIG901"]


JSON_POD = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"containers": [{"name": "c", '
    '"image": "x", "resources": {"limits": {"nvidia.com/gpu": 3}}}]}}\n'
)


@pytest.mark.parametrize("text", [f"{POD}---\n{JSON_POD}", f"{JSON_POD}---\n{POD}", f"---\n{JSON_POD}"])
def test_json_between_the_markers_of_yaml_gets_its_claim_behind_it(text: str) -> None:
    result = after(text, migrations=MIGRATIONS)
    name = '"metadata": {"name": "b-gpu"}'
    assert name in result and '"resourceClaimTemplateName": "b-gpu"' in result
    undone, report = back(result)
    assert undone == text and len(report.files) == 1
    assert [item.code for item in run(JSON_POD, migrations=MIGRATIONS).items("refusal")] == ["MIG905"]


SCRIPT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  run.sh: |
    oc annotate namespace a %s
    kubectl apply -f - <<END
    limits: ${LIMITS}
    END
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("openshift.io/display-name=MinIO openshift.io/requester=me", False),
        ("openshift.io/mynics=a", False),
        ("openshift.io/mynics: 1", True),
    ],
)
def test_annotations_of_openshift_in_scripts_are_no_devices(words: str, told: bool) -> None:
    assert [code for _, code, _ in said(SCRIPT % words)] == ["MIG123"] * told


def test_schemas_of_values_ask_for_nothing() -> None:
    limits = '{"type": "object", "default": {"limits": {"nvidia.com/gpu": 1}}}'
    assert not said(f'{{"type": "object", "properties": {{"resources": {limits}}}}}')
    assert [code for _, code, _ in said(limits)] == ["MIG903"]


VALUES = """\
url: URL
model:
  nodeSelector:
    nvidia.com/gpu.memory: "40960"
  resources:
    limits:
      LIMITS
"""


def test_labels_in_values_ask_for_nothing() -> None:
    ((_, code, message),) = said(VALUES.replace("LIMITS", "nvidia.com/gpu: 2"))
    assert code == "MIG903"
    assert "it names nvidia.com/gpu in line 7" in message and "memory" not in message
    assert not said(VALUES.replace("LIMITS", "cpu: 2"))


def test_values_with_actions_in_their_texts_are_not_to_be_filled_in() -> None:
    text = VALUES.replace("URL", "http://{{ .Release.Name }}-vllm").replace("LIMITS", "nvidia.com/gpu: 2")
    ((_, code, message),) = said(text)
    assert code == "MIG901"
    assert "change the tool's own input" in message and "count in the ResourceClaimTemplate" not in message


TASK = """\
- name: Count the GPUs
  shell: COMMAND
  retries: "{{ retries }}"
"""


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("kubectl get nodes -l nvidia.com/gpu.count -oname", False),
        ("kubectl get nodes --selector=nvidia.com/gpu.count", False),
        ("kubectl get nodes -ojson | jq '.items[0].metadata.labels[\"nvidia.com/gpu.replicas\"]'", False),
        ("kubectl get nodes -ojson | jq '.items[].status.allocatable[\"nvidia.com/gpu\"]'", False),
        ("kubectl run a --image=b --limits nvidia.com/gpu=1", True),
    ],
)
def test_what_a_task_asks_of_nodes_requests_nothing(command: str, asks: bool) -> None:
    text = TASK.replace("COMMAND", command)
    # Beside it, so that there is something to read.
    report = run(text, POD, migrations=MIGRATIONS)
    assert [item.code for item in report.items("refusal")] == ["MIG901"] * asks


def test_a_command_names_the_chart_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is known stands in the command; what is no command does not look like one."""
    chart = tmp_path / "my chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 1.0.0\n")
    (chart / "values.yaml").write_text("resources:\n  limits:\n    nvidia.com/gpu: 1\n")
    (chart / "templates" / "pod.yaml").write_text(POD.replace("gpu: 1", "gpu: {{ .Values.gpus }}"))
    (tmp_path / "pod.yaml").write_text(POD.replace("gpu: 1", "gpu: ${GPUS}\n    ${EXTRA}"))
    monkeypatch.chdir(tmp_path)
    names = ["my chart/values.yaml", "my chart/templates/pod.yaml", "pod.yaml"]
    report = migrate([Input(name, True) for name in names], MigrationJob(settings(), migrations=MIGRATIONS))
    ways = {item.file: item.way_out for file in report.files for item in file.items}
    assert [ways[name].count("helm template 'my chart' | kubectl dra migrate -") for name in names] == [1, 1, 0]
    assert "(envsubst < pod.yaml | kubectl dra migrate -)" in ways["pod.yaml"]
    assert "…" not in "".join(ways.values())
