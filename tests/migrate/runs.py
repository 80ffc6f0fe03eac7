"""Runs migrate on texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import yaml

from kubectl_dra.api.releases import Release
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.edits import edited
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.manifests.source import comments_of
from kubectl_dra.manifests.values import scalar
from kubectl_dra.migrate.engine import MIGRATIONS, MigrationJob, migrate
from kubectl_dra.migrate.model import MigratedFile, Migration, MigrationReport, MigrationSettings
from kubectl_dra.migrate.reverse.run import reverse
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, load
from tests.manifests.reversing import reversed_edits

VERSIONS = MIGRATIONS[0]

NEWEST: Final = Release(1, 37)


@cache
def catalogue() -> VendorCatalogue:
    """The vendors of this package."""
    return load()


def settings(version: str = "v1", release: Release = NEWEST, reverse: bool = False) -> MigrationSettings:
    """Settings with the vendors of this package."""
    return MigrationSettings(catalogue(), release, version=version, reverse=reverse)


def run(
    *texts: str | bytes,
    version: str = "v1",
    release: Release = NEWEST,
    unsafe: bool = False,
    claims_file: str = "",
    migrations: Sequence[Migration] = (VERSIONS,),
) -> MigrationReport:
    """The report about files 0.yaml, 1.yaml, ... with these texts; only API versions, if nothing else is said."""
    inputs = [
        Input(f"{number}.yaml", True, text if isinstance(text, bytes) else text.encode())
        for number, text in enumerate(texts)
    ]
    return migrate(inputs, MigrationJob(settings(version, release), unsafe, claims_file, tuple(migrations)))


def after(
    text: str,
    version: str = "v1",
    release: Release = NEWEST,
    unsafe: bool = False,
    migrations: Sequence[Migration] = (VERSIONS,),
) -> str:
    """The text of a file after the run; also where nothing is said of it."""
    report = run(text, version=version, release=release, unsafe=unsafe, migrations=migrations)
    assert not report.defects
    for file in report.files:
        assert file.text is not None
        assert_reversible(file)
        return file.text.after
    return text


def forward(text: str, chosen: MigrationSettings | None = None, *, unsafe: bool = True) -> str:
    """The text after all migrations."""
    report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(chosen or settings(), unsafe))
    assert not report.defects
    return next((file.text.after for file in report.files if file.text is not None), text)


def back(text: str, chosen: MigrationSettings | None = None, *, unsafe: bool = True) -> tuple[str, MigrationReport]:
    """The text after the way back."""
    report = reverse([Input("f.yaml", True, text.encode())], MigrationJob(chosen or settings(), unsafe))
    for file in report.files:
        assert_reversible(file)
    return next((file.text.after for file in report.files if file.text is not None), text), report


def comments(text: str) -> Counter[str]:
    """The comments of a text."""
    return Counter(comments_of(text, [document.root for document in read_documents(text, "f.yaml")]))


def assert_reversible(file: MigratedFile) -> None:
    """The edits lead to the text after and, turned around, back to the one before."""
    assert file.text is not None
    steps = [file.text.before]
    for edits in file.edits:
        steps.append(edited(steps[-1], edits))
    assert steps[-1] == file.text.after
    text = steps.pop()
    for edits in reversed(file.edits):
        before = steps.pop()
        text = edited(text, reversed_edits(edits, before))
    assert text == file.text.before


class _Dumper(yaml.SafeDumper):
    """Quotes what kubectl would not read as the text that it is."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if isinstance(scalar(value), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(raw: Any, **style: Any) -> str:
    """A value as YAML that kubectl reads as this value."""
    out = yaml.dump(raw, Dumper=_Dumper, **{"sort_keys": False, "allow_unicode": True, "width": 10_000, **style})
    assert isinstance(out, str)
    return out
