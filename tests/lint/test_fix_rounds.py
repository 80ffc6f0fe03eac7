"""Fixes are made round after round, and only those that help."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.manifests.changes import Set
from tests.lint.cases import mended, report_of

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        count: "2"
        selectors:
        - cel:
            expression: 'device.attributes["nvidia.com/gpu"].gpuModuleID == 1'
"""


def findings(text: str) -> Sequence[LocatedFinding]:
    return report_of(text).findings


def test_findings_that_show_only_after_a_fix_are_told_apart() -> None:
    done = mended(CLAIM)
    assert {finding.code for finding in done.made} == {"DRA102", "DRA218"}
    assert [finding.code for finding in done.followed] == ["DRA211"] and not done.refused
    assert "has(" in done.text.after and "count: 2\n" in done.text.after


def test_a_fix_that_does_not_help_is_not_made() -> None:
    """The others of its round are."""
    found = [
        replace(finding, changes=(Set((*finding.path[:6], "name"), "other"),)) if finding.code == "DRA102" else finding
        for finding in findings(CLAIM)
    ]
    done = mended(CLAIM, found)
    assert [finding.code for finding, _ in done.refused] == ["DRA102"]
    assert "DRA218" in {finding.code for finding in done.made}
    assert "name: other" not in done.text.after and '["gpu.nvidia.com"].gpuModuleID' in done.text.after


def test_two_findings_of_one_text_are_both_fixed() -> None:
    two = 'device.attributes["gpu.nvidia.com"].productName.string == "a"'
    text = CLAIM.replace('device.attributes["nvidia.com/gpu"].gpuModuleID == 1', f"{two} || {two}")
    done = mended(text)
    assert ".string" not in done.text.after and not done.refused


def test_no_unsafe_fix_gives_its_object_a_new_error() -> None:
    text = CLAIM.replace('"2"', "2").replace("nvidia.com/gpu", "gpu.nvidia.com")
    (found,) = (finding for finding in findings(text) if finding.code == "DRA211")
    expression, exactly = found.path, found.path[:-4]
    harmful = replace(found, code="DRA223", safety="unsafe", changes=(Set(expression, "device.nope"),))
    good = replace(found, code="DRA301", safety="unsafe", path=exactly, changes=(Set((*exactly, "count"), 3),))
    done = mended(text, [harmful, good])
    assert [finding.code for finding in done.made] == ["DRA301"]
    ((refused, why),) = done.refused
    assert refused.code == "DRA223" and why.startswith("after it the object has a new error: DRA112: ")
    assert "count: 3" in done.text.after and "nope" not in done.text.after
