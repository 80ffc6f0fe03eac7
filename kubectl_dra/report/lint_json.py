"""Findings as JSON, in the shape of ``schemas/lint.json``."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.addresses import path_of_page
from kubectl_dra.api.releases import Release
from kubectl_dra.lint.registry import BY_CODE
from kubectl_dra.lint.result import LocatedFinding, Report
from kubectl_dra.lint.upgrade import Upgrade, gate_changes
from kubectl_dra.report.structured import gap_json

SCHEMA_VERSION: Final = "1"


def to_json(report: Report) -> dict[str, Any]:
    """The report: findings by file and place, counts, and what was assumed."""
    counts = report.counts()
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "LintReport",
        "assumed": {"kubernetesVersion": str(report.release), "featureGates": sorted(report.features)},
        **({} if report.upgrade is None else {"upgrade": _upgrade(report.upgrade, report.release)}),
        "summary": {
            "files": len(report.files),
            "leftOut": report.left_out,
            "objects": len(report.objects),
            "errors": counts["error"],
            "warnings": counts["warning"],
            "infos": counts["info"],
            "ignored": report.suppressed,
        },
        "findings": [_finding(finding) for finding in report.findings],
        "notes": list(report.notes),
        "unread": [gap_json(gap) for gap in report.unread],
        "defects": list(report.defects),
    }


def _upgrade(upgrade: Upgrade, release: Release) -> dict[str, Any]:
    changes = gate_changes(upgrade.release, release)
    return {
        "from": {"kubernetesVersion": str(upgrade.release), "featureGates": sorted(upgrade.features)},
        "gatesTurnOn": list(changes.on),
        "gatesTurnOff": list(changes.off),
    }


def _finding(finding: LocatedFinding) -> dict[str, Any]:
    rule = BY_CODE[finding.code]
    out: dict[str, Any] = {
        "code": finding.code,
        "name": rule.name,
        "severity": finding.severity,
        "file": finding.file,
        "start": {"line": finding.line, "column": finding.column, "offset": finding.offset},
        "end": {"line": finding.end_line, "column": finding.end_column, "offset": finding.end_offset},
        "object": finding.object,
        "field": finding.field,
        "message": finding.message,
        "why": rule.why(),
        "page": path_of_page("rules", finding.code),
    }
    if finding.advice:
        out["fix"] = {"title": finding.advice, "safety": finding.safety}
    if finding.detail:
        out["serverRule"] = finding.detail
    return out
