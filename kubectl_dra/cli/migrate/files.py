"""The files that ``migrate`` writes: in place, below another directory, or as one stream."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.manifests.files import Through, replace_bytes, replace_files
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.source import decode
from kubectl_dra.migrate.model import MigratedFile, MigrationReport
from kubectl_dra.report.paint import tell


def write_all(files: Sequence[MigratedFile], named: Collection[str]) -> list[Through]:
    """Replace each file as a whole, after checking that all are writable and unchanged; ``named`` are the words typed.

    Raises:
        InputError: one cannot be written; names those already written.
    """
    for file in files:
        _check_writable(file)
    return replace_files([file.text for file in files if file.text is not None], named)


def tell_links(through: Sequence[Through]) -> None:
    """Name the files that were written through links."""
    for link, file in through:
        tell(f"{link} is a link: {file} is written")


def _check_writable(file: MigratedFile) -> None:
    target = Path(file.name)
    try:
        exists = target.exists()
        # A file is replaced by another one beside it, so that the directory matters too.
        folder = target.resolve().parent
    except OSError as error:
        raise InputError(f"{file.name}: cannot be written: {error.strerror or error}; nothing is written") from None
    if exists and not os.access(target, os.W_OK):
        raise InputError(f"{file.name}: cannot be written: it is read-only; nothing is written")
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise InputError(f"{file.name}: cannot be written: no files can be made in {folder}; nothing is written")


def _create(target: Path, data: bytes) -> None:
    try:
        replace_bytes(target, data)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None


# --- below another directory ---------------------------------------------------------------------


def output_names(
    paths: Sequence[str], inputs: Sequence[Input], folder: str, report: MigrationReport
) -> dict[str, Path]:
    """Where each input goes: to its path relative to the common directory of all inputs.

    Raises:
        UsageError: that is where it already is, or two inputs would become one file.
    """
    common = _common(paths)
    out: dict[str, Path] = {}
    names = [found.name for found in inputs]
    names += _added(names, report)
    for name in names:
        if name.startswith("<"):
            below = "stdin.yaml"
        elif name.endswith("(kustomize)"):
            below = f"{Path(name).parent.resolve().name}.yaml"
        else:
            below = os.path.relpath(Path(name).absolute(), common)
            below = Path(name).name if below.startswith("..") else below
        target = Path(folder) / below
        if target in out.values():
            raise UsageError(f"--output-dir {folder}: {name} and another input would both become {target}")
        if target.exists() and Path(name).exists() and target.samefile(name):
            raise UsageError(f"--output-dir {folder}: {name} already exists; use --write to change it in place")
        out[name] = target
    return out


def _added(names: Sequence[str], report: MigrationReport) -> list[str]:
    """The files that the run adds to the inputs of these names."""
    return [file.name for file in report.all_files if file.text is not None and file.name not in names]


def _common(paths: Sequence[str]) -> str:
    folders = [
        str(Path(path).absolute() if Path(path).is_dir() else Path(path).absolute().parent)
        for path in paths
        if path != "-"
    ]
    return os.path.commonpath(folders) if folders else str(Path.cwd())


def write_below(inputs: Sequence[Input], report: MigrationReport, names: Mapping[str, Path]) -> int:
    """Write every input to its place in ``names``, migrated or unchanged; returns the number of files."""
    after = {file.name: file for file in report.all_files if file.text is not None}
    everything = {found.name: found for found in inputs}
    for name, target in names.items():
        changed = after.get(name)
        data = read(everything[name]) if changed is None or changed.text is None else changed.text.data
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{target.parent}: cannot be made: {error.strerror or error}") from None
        _create(target, data)
    return len(names)


# --- as one stream -------------------------------------------------------------------------------


def output_texts(inputs: Sequence[Input], report: MigrationReport) -> str:
    """All inputs, migrated or unchanged, as one stream of documents."""
    after = {file.name: file.text.after for file in report.all_files if file.text is not None}
    names = [found.name for found in inputs]
    texts = [after[found.name] if found.name in after else decode(read(found), found.name).text for found in inputs]
    texts += [after[name] for name in _added(names, report)]
    if len(texts) == 1:
        return texts[0]
    out = ""
    for text in texts:
        if out and not text.startswith("---"):
            out += "---\n"
        out += text if text.endswith("\n") or not text else f"{text}\n"
    return out
