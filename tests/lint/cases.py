"""Reads and runs the case files of rules (see ``cases/README.md``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubectl_dra.api.releases import NEWEST_MODELLED, Release, default_features, parse_release
from kubectl_dra.cli.lint.upgrade import rescheduled
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.explain.settings import Settings
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.engine import lint
from kubectl_dra.lint.finding import LocatedFinding, Report, Safety
from kubectl_dra.lint.fixes import Fixed, fix_text
from kubectl_dra.lint.rules import BY_CODE
from kubectl_dra.lint.upgrade import Upgrade
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.source import decode
from kubectl_dra.scheduling.scheduler import Scheduler

FOLDER = Path(__file__).parent / "cases"
KEYS = {"fail", "pass", "fix", "findings", "release", "gates", "files", "snapshot", "from", "stored"}
FILE = "case.yaml"
SAFETIES: tuple[Safety, ...] = ("safe", "unsafe")
EXAMPLES = ("bad", "good")
"""Stand, as the text of a case, for the example of that name in the rule itself."""


class Case(NamedTuple):
    """One case of a rule."""

    code: str
    name: str
    content: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.code}-{self.name}"

    @property
    def text(self) -> str:
        found = self.content.get("fail", self.content.get("pass"))
        assert isinstance(found, str), f"{self}: it needs fail or pass"
        return found


@cache
def cases() -> tuple[Case, ...]:
    return tuple(_read())


def _read() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for name, content in (yaml.load(path.read_text(), Loader=yaml.CSafeLoader) or {}).items():
            assert set(content) <= KEYS, f"{path.name}: {name}: {set(content) - KEYS}"
            yield Case(path.stem, name, {key: _text(path.stem, value) for key, value in content.items()})


def _text(code: str, value: Any) -> Any:
    return getattr(BY_CODE[code], value)() if isinstance(value, str) and value in EXAMPLES else value


def job(case: Case) -> Job:
    release = parse_release(str(case.content.get("release", NEWEST_MODELLED)))
    gates = set(default_features(release))
    for item in case.content.get("gates", ()):
        gate, _, value = item.partition("=")
        gates.add(gate) if value == "true" else gates.discard(gate)
    snapshot = None
    if "snapshot" in case.content:
        snapshot = read_snapshot(["-"], stdin=case.content["snapshot"].encode())
    return Job(AssumedCluster(release, frozenset(gates), snapshot, upgrade=_upgrade(case, release)), Selection())


def _upgrade(case: Case, to: Release) -> Upgrade | None:
    if "from" not in case.content:
        return None
    before = parse_release(str(case.content["from"]))
    features = default_features(before)
    if not case.content.get("stored"):
        return Upgrade(before, features)
    cluster = read_snapshot(["-"], stdin=case.text.encode())
    was, will = Settings(Scheduler(before, features)), Settings(Scheduler(to, default_features(to)))
    return Upgrade(before, features, is_stored=True, rescheduled=rescheduled(cluster, was, will)[0])


def inputs(case: Case, text: str) -> list[Input]:
    more = [Input(name, True, other.encode()) for name, other in case.content.get("files", {}).items()]
    return [Input(FILE, True, text.encode()), *more]


def report_of(text: str, **content: Any) -> Report:
    """What all rules report of a text, beside what else a case may have: a release, a snapshot."""
    case = Case("", "", {"fail": text, **content})
    report = lint(inputs(case, text), job(case), 1)
    assert not report.defects, report.defects
    return report


def mended(text: str, among: Sequence[LocatedFinding] | None = None) -> Fixed:
    """A text after the fixes of all its findings, or of these, and of those that show then."""
    findings = report_of(text).findings if among is None else among
    return fix_text(decode(text, FILE), findings, SAFETIES, lambda _, data: report_of(data.decode()).findings)


def run(case: Case, text: str) -> list[LocatedFinding]:
    """The findings of the case's own rule in the text, with that of all files given."""
    report = lint(inputs(case, text), job(case), 1)
    assert not report.defects, report.defects
    return [found for found in report.findings if found.code == case.code]


def fixed(case: Case) -> str:
    """The text after all fixes of the case's own rule."""

    def check(name: str, data: bytes) -> Sequence[LocatedFinding]:
        return run(case, data.decode())

    return fix_text(decode(case.text, FILE), run(case, case.text), SAFETIES, check).text.after
