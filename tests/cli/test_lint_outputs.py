"""What lint prints beside findings: diffs, empty reports, counts."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Dra, Ran
from tests.lint.support import CLAIM

FLAT = CLAIM.replace("      exactly:\n        device", "      device")


@pytest.mark.parametrize("output", ["json", "sarif", "github", "junit", "concise"])
def test_a_diff_is_printed_in_one_form_only(dra: Dra, output: str) -> None:
    Path("a.yaml").write_text(FLAT)
    ran = dra("lint", "-o", output, "--diff", "a.yaml")
    assert ran == Ran(2, "", f"error: --diff prints a diff, not {output}: leave one of the two out\n")


def test_what_the_server_says_of_a_field_is_told_with_the_field(dra: Dra) -> None:
    """Where no field is shown beside it: "must be set" alone says nothing."""
    Path("a.yaml").write_text(CLAIM.replace("deviceClassName: gpu.example.com", "count: 0"))
    told = "spec.devices.requests[0].exactly.deviceClassName: must be set"
    assert f"error DRA103 {told}" in dra("lint", "-o", "concise", "a.yaml").out
    assert f": {told}" in dra("lint", "-o", "github", "a.yaml").out
    (first, *_) = dra("lint", "-o", "sarif", "a.yaml").json["runs"][0]["results"]
    assert first["message"]["text"].startswith(told)


def test_programs_get_a_report_of_nothing_too(dra: Dra) -> None:
    Path("a.yaml").write_text("a: b\n")
    ran = dra("lint", "-o", "json", "a.yaml")
    read = ran.json
    assert (ran.code, read["exitCode"], read["findings"], read["summary"]["objects"]) == (2, 2, [], 0)
    assert "a.yaml: no Kubernetes object to check (1 file read)" in read["notes"]
    assert ran.err == "error: a.yaml: no Kubernetes object to check (1 file read)\n"
    assert dra("lint", "-o", "sarif", "a.yaml").json["runs"][0]["results"] == []


def test_what_is_on_the_screen_is_not_counted_again(dra: Dra) -> None:
    """Only findings of several files get a table and the places of errors."""
    class_ = (
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: A}\nspec: {selectors: [SELECTOR]}\n---\n"
    )
    class_ = class_.replace("SELECTOR", "{cel: {expression: 'device.attributes[\"a.example.com\"].b == 1'}}")
    Path("a.yaml").write_text(class_ * 8)
    alone = dra("lint", "a.yaml").out
    assert "COUNT" not in alone and "Errors are in" not in alone
    Path("b.yaml").write_text(class_)
    both = dra("lint", "a.yaml", "b.yaml").out
    assert "COUNT" in both and "Errors are in" in both


def test_what_a_kustomization_builds_is_to_be_checked_too(dra: Dra) -> None:
    """A prefix renames objects and not who refers to them: the files alone do not show it."""
    for name in ("base", "my overlay"):
        Path(name).mkdir()
    Path("base/a.yaml").write_text(CLAIM)
    Path("base/kustomization.yaml").write_text("resources: [a.yaml]\n")
    Path("my overlay/kustomization.yaml").write_text("resources: [../base]\nnamePrefix: prod-\n")
    said = "my overlay/kustomization.yaml: check what it builds as well: kubectl dra lint -k 'my overlay'"
    assert dra("lint", ".").err == f"note: {said}\n"
    assert dra("lint", "-o", "json", ".").json["notes"] == [said]
    Path("base/b").mkdir()
    Path("base/b/kustomization.yaml").write_text("resources: [other.yaml]\n")
    assert (
        dra("lint", "base").err
        == "note: base/kustomization.yaml: check what it builds as well: kubectl dra lint -k base\n"
    )
    assert dra("lint", "base/a.yaml").err == ""


def test_a_diff_says_what_is_found_in_what_it_writes(dra: Dra) -> None:
    """Of the name of a product only a part is known here, and a fix of another rule keeps it."""
    text = CLAIM.replace("gpu.example.com", "gpu.nvidia.com\n        selectors: [SELECTOR]")
    key = """{cel: {expression: 'device.attributes["gpu.nvidia.com/model"] == "H100"'}}"""
    Path("a.yaml").write_text(text.replace("SELECTOR", key))
    told = dra("lint", "--diff", "--unsafe-fixes", "a.yaml").err
    assert 'after it a.yaml:11: DRA213: no product is called "H100"' in told


@pytest.mark.parametrize("words", [("-f", "a.yaml"), ("-R", "-f", "."), ("--filename=a.yaml",)])
def test_files_are_named_as_for_kubectl_too(dra: Dra, words: tuple[str, ...]) -> None:
    Path("a.yaml").write_text(FLAT)
    assert "DRA101" in dra("lint", *words).out


def test_what_is_filled_in_later_is_no_object_that_is_missing(dra: Dra) -> None:
    Path("a.yaml").write_text(CLAIM.replace("gpu.example.com", "${CLASS}"))
    assert "not among the files" not in dra("lint", "a.yaml").out
    Path("a.yaml").write_text(CLAIM.replace("gpu.example.com", "tier"))
    assert "not among the files, so not checked: DeviceClass tier" in dra("lint", "a.yaml").out


@pytest.mark.parametrize("wrong", [True, False])
def test_of_standard_input_the_fixed_text_is_printed(dra: Dra, monkeypatch: pytest.MonkeyPatch, wrong: bool) -> None:
    """What is left is told beside it."""
    text = CLAIM.replace("        device", "        count: COUNT\n        device").replace(
        "name: gpu\nspec", "name: GPU\nspec"
    )
    given, right = text.replace("COUNT", '"2"' if wrong else "2"), text.replace("COUNT", "2")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given.encode())))
    ran = dra("lint", "--fix", "-")
    assert (ran.code, ran.out) == (1, right)
    assert ran.err.startswith("1 fix made\n" if wrong else "0 fixes made\n") and "error DRA104 " in ran.err
    assert dra("lint", "--fix", "-", "-o", "json").err.startswith("error: --fix writes the text of standard input")


def test_an_object_of_the_cluster_has_no_namespace_in_its_name(dra: Dra) -> None:
    class_ = (
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: big, namespace: ml}\nspec: {nope: 1}\n"
    )
    Path("a.yaml").write_text(class_)
    (finding, *_) = dra("lint", "a.yaml", "-o", "json").json["findings"]
    assert "ml/big" not in json.dumps(finding)


def test_a_reason_has_no_marks_of_markdown(dra: Dra) -> None:
    Path("a.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: broken}\n"
        "spec:\n  taint: {key: example.com/broken, effect: NoExecute}\n"
    )
    told = dra("lint", "a.yaml").flat
    assert "kubernetes/kubernetes#141998 (https://github.com" in told and "](" not in told


def test_the_gate_that_drops_alternatives_is_told_with_what_is_missing(dra: Dra) -> None:
    alternatives = "      firstAvailable:\n      - name: a\n        deviceClassName: gpu.example.com\n"
    text = CLAIM.replace("      exactly:\n        deviceClassName: gpu.example.com\n", alternatives)
    for version, instead in (("v1beta1", "deviceClassName"), ("v1beta2", "exactly")):
        Path("a.yaml").write_text(text.replace("/v1\n", f"/{version}\n"))
        found = dra("lint", "a.yaml", "--kubernetes-version", "1.33", "-o", "json").json["findings"]
        (missing,) = (finding for finding in found if finding["code"] == "DRA103")
        assert "the gate DRAPrioritizedList is off" in missing["message"]
        assert missing["fix"]["text"] == f"Turn the gate DRAPrioritizedList on, or write {instead} in its place."


def test_a_quota_of_a_class_gets_the_right_key(dra: Dra) -> None:
    Path("a.yaml").write_text(
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\n"
        'spec: {hard: {requests.gpu.nvidia.com: "4", count/resourceclaims.resource.k8s.io: "2"}}\n'
    )
    dra("lint", "--fix", "--unsafe-fixes", "a.yaml")
    assert "gpu.nvidia.com.deviceclass.resource.k8s.io/devices" in Path("a.yaml").read_text()


def test_a_cluster_without_files_is_checked_for_an_upgrade(dra: Dra) -> None:
    Path("s.yaml").write_text(CLAIM)
    assert dra("lint", "--snapshot", "s.yaml").err.endswith("a cluster is checked for an upgrade: --from RELEASE\n")
    assert "--from" not in dra("lint").err


@pytest.mark.parametrize("metadata", ["metadata", "spec/metadata"])
def test_a_misspelled_field_of_metadata_is_renamed(dra: Dra, metadata: str) -> None:
    text = CLAIM.replace("metadata:\n", "metadata:\n  namespce: a\n")
    if metadata != "metadata":
        text = (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: a}\nspec:\n"
            "  metadata:\n    labls: {a: b}\n"
            "  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu.example.com}}]}}\n"
        )
    Path("a.yaml").write_text(text)
    dra("lint", "--fix", "a.yaml")
    assert Path("a.yaml").read_text() == text.replace("namespce", "namespace").replace("labls", "labels")


def test_a_selector_that_matches_no_device_has_a_command_to_see_why(dra: Dra) -> None:
    Path("s.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu.example.com}\n"
        "spec: {selectors: [{cel: {expression: 'device.driver == \"d.example.com\"'}}]}\n---\n"
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec:\n"
        "  {driver: d.example.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1},\n"
        "   devices: [{name: a, attributes: {model: {string: x}}}]}\n"
    )
    selector = '        selectors: [{cel: {expression: \'device.attributes["d.example.com"].model == "y"\'}}]\n'
    Path("a b.yaml").write_text(CLAIM + selector)
    ran = dra("lint", "a b.yaml", "--snapshot", "s.yaml", "-o", "json")
    found = ran.json["findings"]
    (nothing,) = (finding for finding in found if finding["code"] == "DRA221")
    assert nothing["fix"]["command"] == "kubectl dra explain -f 'a b.yaml' --snapshot s.yaml"
