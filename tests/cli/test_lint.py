"""``kubectl dra lint`` as a person runs it: exit codes, formats, fixes, configuration."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Dra, Ran, write_list
from tests.lint.support import CLAIM

FLAT = CLAIM.replace("      exactly:\n        device", "      device")
ONLY = ("--select", "DRA1,DRA9")


def test_clean_is_0_and_findings_are_1(dra: Dra) -> None:
    Path("a.yaml").write_text(CLAIM)
    ran = dra("lint", "a.yaml", *ONLY)
    assert (ran.code, ran.err) == (0, "") and ran.out.startswith("no findings")
    Path("a.yaml").write_text(FLAT)
    assert dra("lint", "a.yaml", *ONLY).code == 1


@pytest.mark.parametrize("words", [(), ("nowhere.yaml",), (".",), ("empty.yaml",), ("x.yaml", "--select", "DRAX")])
def test_usage_and_nothing_to_check_are_2(dra: Dra, words: tuple[str, ...]) -> None:
    Path("sub").mkdir()
    if words == ("empty.yaml",):
        Path("empty.yaml").write_text("")
    ran = dra("lint", *words)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1 and ran.err.startswith("error: ")


def test_other_kinds_are_passed_over(dra: Dra) -> None:
    Path("a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert dra("lint", "a.yaml").code == 0
    Path("b.yaml").write_text("a: 1\n")
    assert dra("lint", "b.yaml").code == 2
    assert dra("lint", "b.yaml", "--allow-empty").code == 0


def test_fail_on(dra: Dra) -> None:
    Path("a.yaml").write_text(CLAIM + "metadata: {name: a}\n")
    assert dra("lint", "a.yaml", *ONLY).code == 1
    assert dra("lint", "a.yaml", *ONLY, "--fail-on", "error").code == 0
    assert dra("lint", "a.yaml", "--ignore", "duplicate-key", "--select", "DRA9").code == 0


def test_one_line_for_each_finding(dra: Dra) -> None:
    Path("a.yaml").write_text(FLAT)
    ran = dra("lint", "a.yaml", *ONLY, "-o", "concise")
    assert (ran.code, ran.out) == (
        1,
        "a.yaml:9:7: error DRA101 spec.devices.requests[0].deviceClassName: there is no field 'deviceClassName' here "
        "in v1: it is inside exactly (--fix)\n"
        f"{dra('lint', 'a.yaml', *ONLY).out.splitlines()[-2]} {dra('lint', 'a.yaml', *ONLY).out.splitlines()[-1]}\n",
    )


def test_notes_of_one_rule_are_told_once_there_are_many(dra: Dra) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec:\n  containers:\n  - name: c\n    image: a:1\n"
        "    resources:\n      limits: {nvidia.com/gpu: 1}\n"
    )
    for number in range(12):
        Path(f"{number:02}.yaml").write_text(pod.replace("NAME", f"p{number}"))
    Path("z.yaml").write_text(FLAT)
    ran = dra("lint", ".")
    shown = [line for line in ran.out.splitlines() if "info DRA703" in line]
    assert len(shown) == 3 and "03.yaml" not in ran.out
    assert "and 9 more DRA703 device-plugin-resource in 9 files: -o concise lists each." in ran.out
    assert "12      info" in ran.out and "The error is in z.yaml:9." in ran.out
    assert "The error is" not in dra("lint", ".", "-o", "concise").out
    assert dra("lint", ".", "-o", "concise").out.count("DRA703") == 12
    for number in range(9):
        Path(f"{number:02}.yaml").unlink()
    assert "more DRA703" not in dra("lint", ".").out


@pytest.mark.parametrize("output", ["json", "sarif", "github", "junit"])
def test_formats_are_alone_on_standard_output(dra: Dra, output: str) -> None:
    Path("a.yaml").write_text(FLAT)
    Path("t.yaml").write_text("a: {{ .Values.x }}\n")
    ran = dra("lint", ".", "-o", output, *ONLY)
    assert ran.code == 1 and "template" in ran.err
    if output in ("json", "sarif"):
        assert ran.json is not None


def test_fix_writes_only_what_changes(dra: Dra) -> None:
    text = "\ufeff# mine 😀\r\n" + FLAT.replace("\n", "\r\n")
    Path("a.yaml").write_bytes(text.encode())
    Path("a.yaml").chmod(0o640)
    ran = dra("lint", "--fix", "a.yaml", *ONLY)
    assert ran.code == 0 and ran.err == "1 fix made in 1 file\n"
    assert Path("a.yaml").read_bytes() == ("\ufeff# mine 😀\r\n" + CLAIM.replace("\n", "\r\n")).encode()
    assert Path("a.yaml").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in Path().iterdir()] == ["a.yaml"]


def test_diff_shows_and_writes_nothing(dra: Dra) -> None:
    Path("a.yaml").write_text(FLAT)
    ran = dra("lint", "--diff", "a.yaml", *ONLY)
    assert ran.code == 1 and Path("a.yaml").read_text() == FLAT
    assert [line for line in ran.out.splitlines() if line[:1] in "+-"][2:] == [
        "-      deviceClassName: gpu.example.com",
        "+      exactly:",
        "+        deviceClassName: gpu.example.com",
    ]
    Path("a.yaml").write_text(CLAIM)
    assert dra("lint", "--diff", "a.yaml", *ONLY) == Ran(0, "", "no findings\n")


def test_configuration(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("sub").mkdir()
    Path("sub/a.yaml").write_text(FLAT)
    Path(".kubectl-dra.yaml").write_text("kubernetesVersion: 1.34\nlint:\n  perFileIgnores: {'sub/*': [DRA1]}\n")
    ran = dra("lint", "sub", *ONLY, "-o", "json")
    assert ran.code == 0 and ran.json["assumed"]["kubernetesVersion"] == "1.34"
    assert dra("lint", "sub", *ONLY, "--no-config").code == 1
    Path("sub/.kubectl-dra.yaml").write_text("lint: {exclude: ['*.yaml']}\n")
    monkeypatch.chdir("sub")
    assert dra("lint", ".", *ONLY).code == 2
    assert dra("lint", ".", *ONLY, "--config", "../.kubectl-dra.yaml").code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lints: {}\n", 'unknown key "lints"; did you mean lint?'),
        ("lint: {failOn: all}\n", "failOn"),
        ("lint: {select: 3}\n", "list of texts"),
        ("lint: {ignore: [DRA999]}\n", "no rule"),
        ("featureGates: {DRADeviceTaints: maybe}\n", "true or false"),
        ("featureGates: {DRADeviceTaint: true}\n", "did you mean DRADeviceTaints"),
        ("kubernetesVersion: '1.30'\n", "1.31 to 1.37"),
        ("a: [\n", "not valid YAML"),
    ],
)
def test_wrong_configuration_is_one_sentence(dra: Dra, text: str, words: str) -> None:
    Path("a.yaml").write_text(CLAIM)
    Path(".kubectl-dra.yaml").write_text(text)
    ran = dra("lint", "a.yaml")
    assert ran.code == 2 and words in ran.err and len(ran.err.splitlines()) == 1
    assert ".kubectl-dra.yaml" in ran.err


def test_rules_and_one_rule(dra: Dra) -> None:
    listed = dra("lint", "--rules")
    assert listed.code == 0 and listed.out.startswith("DRA101  unknown-field")
    assert dra("lint", "--explain", "unknown-field").out == dra("lint", "--explain", "dra101").out
    assert "did you mean" in dra("lint", "--explain", "unknown-fields").err


def test_kustomize_that_is_not_there(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ran = dra("lint", "-k", ".")
    assert ran.code == 2 and "neither is on the PATH" in ran.err


def test_kustomize(dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "kustomize"
    program.write_text(f"#!/bin/sh\n[ \"$1 $2\" = 'build .' ] || exit 1\n/bin/cat <<'END'\n{FLAT}END\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = dra("lint", "-k", ".", *ONLY)
    assert ran.code == 1 and "(kustomize)" in ran.out
    program.write_text("#!/bin/sh\necho 'no such overlay' >&2\nexit 1\n")
    assert "no such overlay" in dra("lint", "-k", ".").err


def test_snapshot(dra: Dra) -> None:
    Path("a.yaml").write_text(CLAIM)
    write_list(Path("cluster.json"), [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": {}}
    ])  # fmt: skip
    assert dra("lint", "a.yaml", "--snapshot", "cluster.json", *ONLY).code == 0
    assert dra("lint", "a.yaml", "--snapshot", "cluster.json", "--live").code == 2


def test_verify_says_how_far_both_engines_agree(dra: Dra) -> None:
    selector = "        selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]\n"
    devices = (
        "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: a}\n"
        "spec: {driver: gpu.example.com, nodeName: a, pool: {name: a, generation: 1, resourceSliceCount: 1}, "
        "devices: [{name: a}]}\n"
    )
    Path("a.yaml").write_text(CLAIM + selector + devices)
    ran = dra("lint", "a.yaml", "--verify")
    assert ran.code == 0 and "1 answers agree, 0 differ" in ran.err and "--verify" not in ran.out


def test_one_broken_document_hides_neither_the_others_nor_itself(dra: Dra) -> None:
    Path("a.yaml").write_text(f"{FLAT}---\na: [\n---\n{FLAT}")
    ran = dra("lint", "a.yaml", *ONLY, "-o", "json")
    found = ran.json["findings"]
    assert ran.code == 1 and sorted(one["code"] for one in found) == ["DRA101", "DRA101", "DRA901"]
    before = Path("a.yaml").read_text()
    ran = dra("lint", "--fix", "a.yaml", *ONLY)
    assert ran.code == 1 and Path("a.yaml").read_text() == before
    assert "another document of the file cannot be read" in ran.err


def test_a_diff_says_that_there_are_unsafe_fixes(dra: Dra) -> None:
    Path("q.yaml").write_text(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\n"
        'spec:\n  hard:\n    gpu.nvidia.com.resource.k8s.io/count: "16"\n'
    )
    ran = dra("lint", "--diff", "q.yaml")
    assert (ran.code, ran.out, ran.err) == (0, "", "the diff fixes 0 of 1 finding; 1 with --unsafe-fixes\n")
    ran = dra("lint", "--diff", "--unsafe-fixes", "q.yaml")
    assert (ran.code, ran.err) == (1, "the diff fixes 1 of 1 finding\n")


def test_unsafe_fixes_are_made_only_with_fix(dra: Dra) -> None:
    """The flag says which fixes are meant, and --fix that they are made."""
    text = CLAIM.replace("kind: ResourceClaim", "kind: ResourceClam")
    Path("a.yaml").write_text(text)
    ran = dra("lint", "a.yaml", "--unsafe-fixes")
    assert ran.code == 1 and Path("a.yaml").read_text() == text
    assert "Did you mean ResourceClaim? (--fix --unsafe-fixes)" in ran.out
    assert "Fixable: 1 with --fix --unsafe-fixes." in ran.out
    assert ran.err == "note: --unsafe-fixes changes nothing by itself: add --fix, or --diff to see the changes\n"
    assert dra("lint", "a.yaml", "--fix").code == 1 and Path("a.yaml").read_text() == text
    assert dra("lint", "a.yaml", "--fix", "--unsafe-fixes").code == 0 and Path("a.yaml").read_text() == CLAIM


def test_the_summary_has_the_words_of_the_flag(dra: Dra) -> None:
    Path("p.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
        "  - {name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}\n"
    )
    ran = dra("lint", "p.yaml", "--kubernetes-version", "1.33")
    assert ran.code == 0 and "1 info in 1 file" in ran.out and "kubectl dra migrate p.yaml" in ran.out
    assert dra("lint", "p.yaml", "--kubernetes-version", "1.33", "--fail-on", "info").code == 1


@pytest.mark.parametrize(
    "text",
    ["spec: {containers: 5, foo: bar}", "metadata: x\nspec: []", "spec: {containers: [{name: c, resources: 1}]}"],
)
def test_a_pod_that_cannot_be_decoded(dra: Dra, text: str) -> None:
    """Whether it has claims cannot be told, so nobody can say that nothing is wrong."""
    Path("p.yaml").write_text(f"apiVersion: v1\nkind: Pod\n{text}\n")
    ran = dra("lint", "p.yaml")
    assert ran.code == 1 and "DRA102 wrong-type" in ran.out
    Path("p.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, x: 1}]}\n")
    assert dra("lint", "p.yaml").code == 0


def test_what_has_no_file_is_migrated_as_it_was_linted(dra: Dra) -> None:
    from kubectl_dra.manifests.inputs import arguments

    assert [
        shlex.join(arguments(name)) for name in ("<stdin>", "overlays/prod/(kustomize)", "(kustomize)", "a b.yaml")
    ] == [
        "-",
        "-k overlays/prod",
        "-k .",
        "'a b.yaml'",
    ]


def test_a_baseline_leaves_out_what_is_known(dra: Dra) -> None:
    Path("a.yaml").write_text("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: A}\n")
    assert dra("lint", "a.yaml").code == 1
    assert dra("lint", "--write-baseline", "a.yaml").code == 2
    assert dra("lint", "--baseline", "known.json", "--write-baseline", "a.yaml").code == 0
    assert dra("lint", "--baseline", "known.json", "a.yaml").code == 0


@pytest.mark.parametrize(
    "word",
    ["$KSA_NAME", "${KSA_NAME:-default}", "$(params.account)", "@ACCOUNT@", "%ACCOUNT%", "((account))", "<ACCOUNT>"],
)
def test_what_a_templater_fills_in_is_no_error(dra: Dra, word: str) -> None:
    Path("a.yaml").write_text(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  serviceAccountName: '{word}'\n"
        "  resourceClaims: [{name: a, resourceClaimName: a}]\n"
        "  containers: [{name: a, image: a, resources: {claims: [{name: a}]}}]\n"
    )
    ran = dra("lint", "a.yaml")
    assert ran.code == 0, ran.out


def test_what_no_rule_is_about_is_named(dra: Dra) -> None:
    Path("a.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
    )
    ran = dra("lint", "a.yaml")
    assert (ran.code, ran.out) == (
        0,
        "nothing checked in 1 file, for Kubernetes 1.37.\nNot checked, because no rule is about them: Service (2).\n",
    )
    assert dra("lint", "a.yaml", "-o", "json").json["summary"]["notChecked"] == {"Service": 2}


def test_a_claim_without_api_version_is_no_empty_file(dra: Dra) -> None:
    Path("a.yaml").write_text(CLAIM.replace("apiVersion", "apiversion"))
    ran = dra("lint", ".")
    assert ran.code == 1
    assert "apiVersion is not set; 'apiversion' is a misspelling of it" in ran.out
    assert "fix: Write apiVersion: resource.k8s.io/v1." in ran.out


def test_a_kind_of_another_group_is_named_with_its_group(dra: Dra) -> None:
    Path("a.yaml").write_text("apiVersion: example.com/v1\nkind: ResourceClaim\nmetadata: {name: a}\n")
    ran = dra("lint", "a.yaml")
    assert ran.code == 0
    assert "Not checked, because no rule is about them: ResourceClaim of example.com." in ran.out


def test_a_command_to_paste_has_a_line_of_its_own_and_is_said_once(dra: Dra) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME}\nspec:\n  containers:\n  - name: c\n    image: a:1\n"
        "    resources:\n      limits: {nvidia.com/gpu: 1}\n"
    )
    Path("a.yaml").write_text(f"{pod.replace('NAME', 'a')}---\n{pod.replace('NAME', 'b')}")
    lines = [line.strip() for line in dra("lint", "a.yaml").out.splitlines()]
    assert lines.count("kubectl dra migrate a.yaml") == 1 and "fix: the same as in line 9" in lines
    found = dra("lint", "a.yaml", "-o", "json").json["findings"]
    assert {finding["fix"]["command"] for finding in found} == {"kubectl dra migrate a.yaml"}


def test_standard_input_has_no_command_that_would_wait_for_it(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: c\n    image: a:1\n"
        "    resources:\n      limits: {nvidia.com/gpu: 1}\n"
    )
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pod.encode())))
    ran = dra("lint", "-")
    assert "pipe the same input into kubectl dra migrate -." in ran.flat
    assert not any(line.strip().startswith("kubectl dra") for line in ran.out.splitlines())


def test_a_class_that_no_file_has_is_named(dra: Dra) -> None:
    template = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: one-gpu}\n"
        "spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: CLASS}}]}}}\n"
    )
    Path("a.yaml").write_text(template.replace("CLASS", "gpu-high-memory"))
    said = "Used, but not among the files, so not checked: DeviceClass gpu-high-memory."
    assert said in dra("lint", "a.yaml").flat
    Path("a.yaml").write_text(template.replace("CLASS", "gpu.nvidia.com"))
    assert "Used, but not" not in dra("lint", "a.yaml").out


def test_what_the_server_checks_only_of_what_it_can_decode_is_announced(dra: Dra) -> None:
    slice_ = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: a}\nspec:\n"
        "  nodeName: a\n  driver: gpu.example.com\n  pool: {name: a, generation: 1, resourceSliceCount: 1}\n"
        "  devices:\n  - name: gpu-0\n    basic:\n      attributes: {model: {string: a, int: 1}}\n"
    )
    Path("a.yaml").write_text(slice_)
    said = "The rest of ResourceSlice a is checked once the API server can decode it (DRA101, DRA102)."
    assert said in dra("lint", "a.yaml").flat
    assert dra("lint", "a.yaml", "-o", "json").json["summary"]["checkedPartly"] == ["ResourceSlice a"]
    dra("lint", "--fix", "a.yaml")
    after = dra("lint", "a.yaml")
    assert after.code == 1 and "More of" not in after.out


def test_a_claim_that_no_file_has_is_named(dra: Dra) -> None:
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml}\nspec:\n  resourceClaims:\n"
        "  - {name: gpu, resourceClaimTemplateName: one-gpu}\n  containers:\n  - name: c\n    image: a:1\n"
        "    resources: {claims: [{name: gpu}]}\n"
    )
    Path("a.yaml").write_text(pod)
    said = "Used, but not among the files, so not checked: ResourceClaimTemplate ml/one-gpu."
    assert said in dra("lint", "a.yaml").flat
    template = (
        "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: one-gpu, namespace: ml}\n"
        "spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}\n"
    )
    Path("a.yaml").write_text(f"{pod}{template}")
    assert "Used, but not" not in dra("lint", "a.yaml").out
    domain = (
        "---\napiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata: {name: one, namespace: ml}\n"
        "spec: {numNodes: 2, channel: {resourceClaimTemplate: {name: one-gpu}}}\n"
    )
    Path("a.yaml").write_text(f"{pod}{domain}")
    assert "Used, but not" not in dra("lint", "a.yaml").out


def test_a_fix_of_several_lines_is_yaml_to_paste(dra: Dra) -> None:
    Path("a.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec:\n  deviceRequests:\n"
        "  - {name: gpu, deviceClassName: gpu.nvidia.com, count: 2}\n"
    )
    out = dra("lint", "a.yaml").out
    lines = ["fix: Write:", "devices:", "  requests:", "  - name: gpu", "    exactly:"]
    assert "\n".join([f"    {lines[0]}", *(f"         {line}" for line in lines[1:])]) in out


@pytest.mark.parametrize(
    "text",
    [
        CLAIM.replace("exactly:", "exactly: &e").replace("deviceClassName", "deviceClasName")
        + "    - name: other\n      exactly: *e\n",
        CLAIM.replace("deviceClassName", "deviceClasName") + "---\nkind: [\n",
        CLAIM.replace("deviceClassName", "deviceClasName") + "---\na: {{ .Values.a }}\n",
    ],
    ids=["alias", "broken document", "template"],
)
def test_a_fix_that_cannot_be_made_is_not_promised(dra: Dra, text: str) -> None:
    Path("a.yaml").write_text(text)
    ran = dra("lint", "a.yaml", *ONLY)
    assert "deviceClasName" in ran.out and "--fix" not in ran.out
    assert "(by hand: an" in ran.out
    found = dra("lint", "a.yaml", *ONLY, "-o", "json").json["findings"]
    assert "safe" not in {finding["fix"]["safety"] for finding in found if "fix" in finding}
    assert not any(
        "fixes" in result for result in dra("lint", "a.yaml", *ONLY, "-o", "sarif").json["runs"][0]["results"]
    )
    fixed = dra("lint", "--fix", "a.yaml", *ONLY)
    assert "not fixed: a.yaml:" in fixed.err and Path("a.yaml").read_text() == text
