"""Helm charts: which directory is one, what helm renders of it, and from which template each line comes."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kubectl_dra.api.releases import Release
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.documents import Document, each_document
from kubectl_dra.manifests.inputs import HELMED, Input, chart_above, run_to_end
from kubectl_dra.manifests.source import decode

_MOST_BROKEN: Final = 20
# What in a chart is no file of values.
_OWN: Final = frozenset(("templates", "crds", "charts", "Chart.yaml", "requirements.yaml"))
# As helm names a template where it fails: llm/templates/pod.yaml.
_TEMPLATE: Final = re.compile(r"[^\s/\"(]+/(templates/[^\s:\")]+|charts/[^\s:\")]+/templates/[^\s:\")]+)")
_SOURCE: Final = re.compile(r"^# Source: [^/\n]+/(.+)$", re.MULTILINE)
_CLAIMS: Final = re.compile(
    r"^(?!\s*#).*\b(resourceClaims|ResourceClaimTemplate|resourceClaimTemplateName)\b", re.MULTILINE
)
_RESOURCES: Final = re.compile(r"^(?!\s*#).*\bresources\b", re.MULTILINE)


class BrokenTemplate(NamedTuple):
    """A template that helm cannot render, and what helm says of it."""

    path: str
    problem: str


class ChartInputs(NamedTuple):
    """The inputs of a run in which charts are what helm renders of them; ``unrendered`` are charts without helm.

    ``broken`` are templates without which they are rendered.
    """

    inputs: tuple[Input, ...]
    paths: tuple[str, ...]
    unrendered: tuple[str, ...]
    broken: tuple[BrokenTemplate, ...] = ()


def is_chart(path: str) -> bool:
    """Whether a path is the directory of a chart."""
    return (Path(path) / "Chart.yaml").is_file()


def rendered_charts(
    paths: Sequence[str], release: Release, values: Sequence[str] = (), sets: Sequence[str] = ()
) -> ChartInputs:
    """What helm renders for a release of those of the paths that are charts, and the other paths.

    Raises:
        FileError: helm failed.
    """
    charts = [path for path in paths if is_chart(path)]
    if charts and shutil.which("helm") is None:
        return ChartInputs((), tuple(paths), tuple(charts))
    inputs, broken = list[Input](), list[BrokenTemplate]()
    for path in charts:
        data, without = rendered_in_part(path, release, values, sets)
        inputs.append(Input(rendering_name(path), True, data))
        broken += without
    others = tuple(path for path in paths if path not in charts)
    return ChartInputs(tuple(inputs), others, (), tuple(broken))


def rendered_in_part(
    chart: str, release: Release, values: Sequence[str] = (), sets: Sequence[str] = ()
) -> tuple[bytes, list[BrokenTemplate]]:
    """As ``rendered``, but without the templates that helm names where it fails.

    Raises:
        FileError: it fails without them, or names none.
    """
    try:
        return rendered(chart, release, values, sets), []
    except FileError as error:
        problem = error
    broken: list[BrokenTemplate] = []
    with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as folder:
        copy = Path(folder) / "chart"
        try:
            shutil.copytree(chart, copy)
        except (OSError, shutil.Error):
            raise problem from None
        for _ in range(_MOST_BROKEN):
            named = _TEMPLATE.search(problem.problem)
            if named is None or not (copy / named[1]).is_file():
                break
            (copy / named[1]).unlink()
            broken.append(BrokenTemplate(f"{chart.rstrip('/')}/{named[1]}", problem.problem))
            try:
                return rendered(str(copy), release, values, sets), broken
            except FileError as error:
                problem = error
    raise FileError(problem.problem, chart)


def rendered(chart: str, release: Release, values: Sequence[str] = (), sets: Sequence[str] = ()) -> bytes:
    """What ``helm template`` prints for a chart with its own values, and with files and single ones laid over them.

    Helm is told the release: its own default is that of the year it was built in, which charts may be too new for.

    Raises:
        FileError: it failed.
    """
    version = f"{release.major}.{release.minor}.{release.patch}"
    command = ["helm", "template", "release", chart, "--kube-version", version]
    command += [word for file in values for word in ("--values", file)]
    command += [word for value in sets for word in ("--set", value)]
    done = run_to_end(command, chart)
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        # Advice of helm's may come behind the error.
        said = [line for line in lines if line.startswith("Error:")] or lines or ["no message"]
        raise FileError(f"helm template failed: {said[-1]}", chart)
    return done.stdout


def rendering_name(chart: str, values: str = "") -> str:
    """What the rendering of a chart is called: by the chart, or by a file of other values."""
    return f"{values} {HELMED}" if values else f"{chart.rstrip('/')}/{HELMED}"


def values_files(chart: str) -> list[str]:
    """The files of a chart with other values than its own: those of its CI, those beside values.yaml that are called
    so, and those that have keys of it, there and one directory below.
    """
    root = Path(chart)
    known = value_keys(root / "values.yaml")
    found = set(root.glob("ci/*.y*ml"))
    for path in (*root.glob("*.y*ml"), *root.glob("*/*.y*ml")):
        called = path.parent == root and "values" in path.name.lower()
        if called or (path.relative_to(root).parts[0] not in _OWN and known & value_keys(path)):
            found.add(path)
    return [
        path.as_posix()
        for path in sorted(found)
        if path.is_file() and path.suffix in (".yaml", ".yml") and path != root / "values.yaml"
    ]


def has_values_of(path: str, chart: str) -> bool:
    """Whether a file has keys of the values of a chart."""
    return bool(value_keys(Path(path)) & value_keys(Path(chart) / "values.yaml"))


def value_keys(path: Path) -> frozenset[str]:
    """The keys of a file of values; none if it is something else, such as an object, or cannot be read."""
    try:
        documents = list(each_document(decode(path.read_bytes(), path.as_posix())))
    except (OSError, FileError):
        return frozenset()
    if len(documents) != 1 or not isinstance(documents[0], Document):
        return frozenset()
    keys = frozenset(map(str, documents[0].object))
    return frozenset() if {"apiVersion", "kind"} & keys else keys


# As a template names files of its chart: .Files.Get "files/pod.yaml", (.Files.Glob "files/*").AsConfig.
_FILES: Final = re.compile(r"\.Files\.(?:Get|GetBytes|Lines|Glob)\s+(?:\"([^\"\n]+)\"|`([^`\n]+)`|(\S))")


@cache
def embedding_template(name: str) -> str:
    """The template of a chart that puts a file (its path) into what it renders as a text; empty if there is none.

    A template that works out the names of files may mean any of them.
    """
    path = Path(name)
    chart = chart_above(path)
    inside = path.relative_to(chart) if chart is not None else path
    if chart is None or inside.parts[0] in ("templates", "crds", "charts"):
        return ""
    for template in sorted((chart / "templates").rglob("*")):
        text = template.read_text("utf-8", "replace") if template.is_file() else ""
        for match in _FILES.finditer(text):
            pattern = match[1] or match[2]
            if pattern is None or fnmatchcase(inside.as_posix(), pattern.removeprefix("/")):
                return template.as_posix()
    return ""


def rendering(chart: str) -> CommandLine:
    """The command that prints what a chart makes."""
    return CommandLine(("helm", "template", chart))


def chart_of(name: str) -> str:
    """The folder of the chart that a file belongs to, as the file is named; empty if it is in none."""
    path = Path(name)
    return str(chart_above(path) or "") if path.is_file() else ""


def source_of(chart: str, text: str, line: int) -> str:
    """The file of the template that a line of a rendered chart comes from; empty if helm does not say it."""
    above = "\n".join(text.splitlines()[:line])
    found = [match[1] for match in _SOURCE.finditer(above)]
    return f"{chart.rstrip('/')}/{found[-1]}" if found else ""


def template_of(chart: str, text: str, line: int, word: str) -> str:
    """As ``source_of``, with the first line of the template that has ``word``, else its resources: FILE:LINE."""
    path = source_of(chart, text, line)
    try:
        template = Path(path).read_text("utf-8", "replace") if path else ""
    except OSError:
        return path
    at = template.find(word) if word else -1
    if at < 0:
        match = _RESOURCES.search(template)
        at = match.start() if match is not None else -1
    return f"{path}:{template.count(chr(10), 0, at) + 1}" if at >= 0 else path


def claim_values(chart: str) -> Iterator[str]:
    """FILE:LINE of each place where a chart speaks of claims by itself: in its values, then in its templates."""
    root = Path(chart)
    for path in (root / "values.yaml", *sorted((root / "templates").rglob("*"))):
        if path.is_file():
            text = path.read_text("utf-8", "replace")
            match = _CLAIMS.search(text)
            if match is not None:
                yield f"{path.as_posix()}:{text.count(chr(10), 0, match.start(1)) + 1}"
