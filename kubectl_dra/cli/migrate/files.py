"""The files that ``migrate`` writes: in place, below another directory, or as one stream."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from kubectl_dra.cli.command_line import repeated
from kubectl_dra.cli.migrate import MigrateFlags
from kubectl_dra.command import Argv, ClusterFlags
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.manifests.files import Through, replace_bytes, replace_files
from kubectl_dra.manifests.inputs import STDIN, Input, read
from kubectl_dra.manifests.source import decode
from kubectl_dra.migrate.model import MigratedFile, MigrationReport


def write_all(files: Sequence[MigratedFile], named: Collection[str]) -> list[Through]:
    """Replace each file as a whole, after checking that all are writable and unchanged; ``named`` are the words typed.

    Raises InputError: one cannot be written; names those already written.
    """
    for file in files:
        _check_writable(file)
    return replace_files([file.text for file in files if file.text is not None], named)


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


# --- below another directory ---------------------------------------------------------------------


def output_names(
    paths: Sequence[str], inputs: Sequence[Input], folder: str, report: MigrationReport
) -> dict[str, Path]:
    """Where each input goes: to its path relative to the common directory of all inputs.

    Raises UsageError: that is where it already is, or two inputs would become one file.
    """
    common = _common(paths)
    out: dict[str, Path] = {}
    names = [file.name for file in inputs]
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
    """Write every input to its place in ``names``, migrated or unchanged; returns the number of files.

    Raises InputError: as ``write_new``.
    """
    after = {file.name: file for file in report.all_files if file.text is not None}
    everything = {file.name: file for file in inputs}

    def data(name: str) -> bytes:
        changed = after.get(name)
        return read(everything[name]) if changed is None or changed.text is None else changed.text.data

    write_new({target: partial(data, name) for name, target in names.items()})
    return len(names)


def write_new(files: Mapping[Path, Callable[[], bytes]]) -> None:
    """Write files that are not there yet. One that is there stays, and must have the same content already.

    Raises InputError: one has other content, or cannot be written.
    """
    for target, data in files.items():
        _is_there(target, data)
    for target, data in files.items():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not _is_there(target, data):
                replace_bytes(target, data())
        except OSError as error:
            raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None


def _is_there(target: Path, data: Callable[[], bytes]) -> bool:
    """Whether a file with this content is there. Raises InputError: it has another content."""
    try:
        if not target.is_symlink() and not target.exists():
            return False
        same = target.read_bytes() == data()
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror or error}") from None
    if not same:
        raise InputError(f"{target}: already exists with other content; remove it, or choose another --output-dir")
    return True


# --- as one stream -------------------------------------------------------------------------------


def output_texts(inputs: Sequence[Input], report: MigrationReport) -> str:
    """All inputs, migrated or unchanged, as one stream of documents."""
    after = {file.name: file.text.after for file in report.all_files if file.text is not None}
    names = [file.name for file in inputs]
    texts = [after[file.name] if file.name in after else decode(read(file), file.name).text for file in inputs]
    texts += [after[name] for name in _added(names, report)]
    if len(texts) == 1:
        return texts[0]
    out = ""
    for text in texts:
        if out and not text.startswith("---"):
            out += "---\n"
        out += text if text.endswith("\n") or not text else f"{text}\n"
    return out


def next_commands(flags: MigrateFlags, report: MigrationReport, where: ClusterFlags) -> tuple[str, ...]:
    """The command that shows what would be written, with --unsafe where only that writes, and the one that asks the
    cluster where the pods could run; none if nothing would be written. ``where``: the cluster that was asked about.
    """
    changes = any(file.text is not None for file in report.changed)
    if STDIN in flags.paths or not (changes or report.items("offer")):
        return ()
    given = {
        "-k": flags.kustomize,
        "--strategy": ("",) if flags.strategy == "claims" else (flags.strategy,),
        "--share": ("",) if flags.share == "template" else (flags.share,),
        "--claims-file": (flags.claims_file,),
        "--to": (flags.to or "",),
        "--vendors": flags.vendors,
        "--values": flags.values,
        "--set": flags.sets,
        "--exclude": flags.exclude,
        "--kubernetes-version": (flags.release,),
    }
    unsafe = flags.unsafe or not changes
    switches = [flag for flag, on in (("--unsafe", unsafe), ("--reverse", flags.reverse)) if on]
    same = ("kubectl", "dra", "migrate", *flags.paths, *repeated(given), *switches)
    if flags.of_cluster:
        return (shlex.join((*same, *about_cluster(flags, where), "--diff")),)
    asks = not flags.reverse and bool(report.moved)
    return tuple(shlex.join((*same, flag)) for flag in ("--diff", *(("--live",) if asks else ())))


def about_cluster(flags: MigrateFlags, where: ClusterFlags) -> Argv:
    """The flags about the cluster, for a command that goes on."""
    live = ("--live",) if flags.live else ()
    scope = ("-A",) if flags.all_namespaces else repeated({"-n": (flags.namespace,)})
    return (*live, *scope, *where.flags)
