"""Manifests before and after migrate, byte by byte, and what is said of them: ``cases/*.yaml``.

A case has the text ``before``; ``after`` if it changes; ``says``: what is said, as "SORT CODE LINE" in the order of
lines; and ``parts``: pieces of messages that must be among what is said. ``options`` are settings of the run.
``back`` is what ``--reverse`` makes of ``after``: ``before`` (if not given), ``same`` for other text that asks for the
same, the code of its refusal, or ``nothing`` where there is no claim to take back.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.api.releases import parse_release
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigrationReport, MigrationSettings
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, load

KEYS = {"name", "before", "after", "says", "parts", "options", "back"}
CASES = Path(__file__).parent / "cases"


@cache
def catalogue() -> VendorCatalogue:
    return load()


def cases() -> Iterator[Any]:
    for file in sorted(CASES.glob("*.yaml")):
        for case in yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            yield pytest.param(case, id=f"{file.stem}: {case['name']}")


def run(file: Path, options: dict[str, Any]) -> MigrationReport:
    release = parse_release(options.get("release", "1.36"))
    chosen: dict[str, Any] = {key: options[key] for key in ("strategy", "share") if key in options}
    settings = MigrationSettings(catalogue(), release, **chosen)
    return migrate([Input(str(file), True)], MigrationJob(settings, unsafe=options.get("unsafe", True)))


@pytest.mark.parametrize("case", list(cases()))
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    assert case.keys() <= KEYS
    file = tmp_path / "workload.yaml"
    file.write_text(case["before"])
    report = run(file, case.get("options", {}))
    assert not report.defects
    found = [text for result in report.files for text in (result.text,) if text is not None]
    after = found[0].after if found else case["before"]
    assert after == case.get("after", case["before"])
    items = sorted(report.items(), key=lambda item: (item.line, item.code, item.sort))
    assert [f"{item.sort} {item.code} {item.line}" for item in items] == case.get("says", [])
    messages = "\n".join(f"{item.message} {item.way_out}" for item in items)
    for part in case.get("parts", ()):
        assert part in messages


@pytest.mark.parametrize("case", [case for case in cases() if "after" in case.values[0]])
def test_a_second_run_changes_nothing(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text(case["after"])
    report = run(file, case.get("options", {}))
    assert not any(result.changed for result in report.files)


@pytest.mark.parametrize("case", [case for case in cases() if "after" in case.values[0]])
def test_what_comes_out_can_be_read_and_has_no_empty_resources(case: dict[str, Any], tmp_path: Path) -> None:
    before = str([document.object for document in read_documents(case["before"], "before.yaml")])
    after = str([document.object for document in read_documents(case["after"], "after.yaml")])
    for empty in ("'resources': {}", "'limits': {}", "'requests': {}", "'limits': None", "'nodeSelector': {}"):
        assert empty in before or empty not in after
