"""krew: the archives, the manifest with their checksums, and krew's rules for both."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
TEMPLATE: Final = HERE / "krew" / "dra.yaml"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MARK: Final = re.compile(r"\{\{(?:(sha256):)?([^{}]+)\}\}")
_VERSION: Final = re.compile(r"v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_SUMMARY: Final = 50
_ARCHITECTURES: Final = {
    "linux": {"386", "amd64", "arm", "arm64", "ppc64le"},
    "darwin": {"386", "amd64", "arm64"},
    "windows": {"386", "amd64", "arm64"},
}
_PROGRAMS: Final = {"kubectl-dra", "kubectl_complete-dra"}
_LICENCES: Final = {"license", "license.txt", "license.md", "licenses", "copying", "copying.txt"}


def archive(folder: Path, target: str, output: Path) -> Path:
    """Packs the program of a target with what belongs to it: a .tar.gz, for Windows a .zip. Same input, same bytes."""
    windows = target.startswith("windows")
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    if not windows:
        files["kubectl_complete-dra"] = (ROOT / "completions" / "kubectl_complete-dra").read_bytes()
    out = output / f"kubectl-dra-{target}{'.zip' if windows else '.tar.gz'}"
    output.mkdir(parents=True, exist_ok=True)
    ordered = dict(sorted(files.items()))
    out.write_bytes(_zipped(ordered) if windows else _tarred(ordered))
    return out


def _tarred(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755 if name in _PROGRAMS else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, data in files.items():
            packed.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def manifest(version: str, homepage: str, archives: Mapping[str, Path], template: str = "") -> str:
    """The manifest with everything filled in. Raises KeyError for a platform that has no archive."""
    values = {"version": version, "homepage": homepage}

    def value(match: re.Match[str]) -> str:
        return sha256(archives[match[2]]) if match[1] else values[match[2]]

    text = template or TEMPLATE.read_text()
    return _MARK.sub(value, text[text.index("apiVersion:") :])


def problems(text: str, name: str, archives: Mapping[str, Path]) -> list[str]:
    """What krew, its index and their reviewers would refuse; empty when nothing.

    ``archives`` are the files behind the last parts of the URIs.
    """
    import yaml

    plugin = yaml.safe_load(text)
    if not isinstance(plugin, dict) or not isinstance(plugin.get("spec"), dict):
        return ["not a manifest: no spec"]
    spec = plugin["spec"]
    platforms = spec.get("platforms") or []
    out = [*_about_plugin(plugin, name), *_about_text(spec)]
    taken: dict[tuple[str, str], int] = {}
    for index, platform in enumerate(platforms):
        out += [f"platforms[{index}]: {problem}" for problem in _about_platform(platform, archives)]
        for pair in _selected(platform.get("selector") or {}):
            if pair in taken:
                out.append(f"platforms[{index}]: selects {'/'.join(pair)}, as platforms[{taken[pair]}] does")
            taken.setdefault(pair, index)
    return out if platforms else [*out, "no platforms"]


def _about_plugin(plugin: Mapping[str, Any], name: str) -> Iterator[str]:
    if plugin.get("apiVersion") != "krew.googlecontainertools.github.com/v1alpha2":
        yield f"apiVersion {plugin.get('apiVersion')}"
    if plugin.get("kind") != "Plugin":
        yield f"kind {plugin.get('kind')}"
    named = (plugin.get("metadata") or {}).get("name")
    if named != name:
        yield f"named {named}, the file {name}"
    if not _NAME.fullmatch(str(named)) or str(named).startswith("kube"):
        yield f"the name {named} is not lower-case words with hyphens, without kube"
    for field in plugin.keys() - {"apiVersion", "kind", "metadata", "spec"}:
        yield f"unknown field {field}"


def _about_text(spec: Mapping[str, Any]) -> Iterator[str]:
    if not _VERSION.fullmatch(str(spec.get("version"))):
        yield f"version {spec.get('version')} is not v and a semantic version"
    summary = spec.get("shortDescription") or ""
    if not summary or "\n" in summary or len(summary) > _SUMMARY or summary.endswith("."):
        yield f"shortDescription must be one line of at most {_SUMMARY} characters without a full stop"
    if not str(spec.get("homepage", "")).startswith("https://"):
        yield "homepage is no https address"
    if not spec.get("description"):
        yield "no description"
    for field in spec.keys() - {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}:
        yield f"unknown field spec.{field}"


def _about_platform(platform: Mapping[str, Any], archives: Mapping[str, Path]) -> Iterator[str]:
    for field in platform.keys() - {"selector", "uri", "sha256", "files", "bin"}:
        yield f"unknown field {field}"
    if not _selected(platform.get("selector") or {}):
        yield "the selector selects no platform that krew knows"
    uri, checksum = str(platform.get("uri") or ""), str(platform.get("sha256") or "")
    if not uri.startswith("https://") or not uri.endswith((".tar.gz", ".zip")):
        yield f"uri {uri} is no https address of a .tar.gz or .zip"
    if not re.fullmatch("[a-f0-9]{64}", checksum):
        yield f"sha256 {checksum} is not 64 hexadecimal digits"
    path = archives.get(PurePosixPath(uri).name)
    if path is None:
        yield f"there is no archive for {uri}"
        return
    if sha256(path) != checksum:
        yield f"sha256 is not that of {path.name}"
    yield from _about_content(platform, _names(path))


def _about_content(platform: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    files = platform.get("files")
    if files is not None and not files:
        yield "files is empty: leave it out or fill it"
    installed: set[str] = set() if files else set(names)
    for operation in files or ():
        source, target = operation.get("from"), operation.get("to")
        matching = [name for name in names if source and PurePosixPath(name).match(source.lstrip("/"))]
        if not source or not target:
            yield "files: an entry without from or to"
        elif not matching:
            yield f"files: nothing in the archive is {source}"
        if ".." in PurePosixPath(str(target)).parts or str(target).startswith("/"):
            yield f"files: {target} is outside the plugin"
        installed |= {str(PurePosixPath(target or "") / PurePosixPath(name).name) for name in matching}
    program = platform.get("bin")
    if program not in installed:
        yield f"bin {program} is not among the installed files"
    if any(os == "windows" for os, _ in _selected(platform.get("selector") or {})) and not str(program).endswith(
        ".exe"
    ):
        yield "bin must be an .exe on Windows"
    if not any(PurePosixPath(name).name.lower() in _LICENCES for name in installed):
        yield "no licence file is installed"


def _selected(selector: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The platforms that a label selector selects; none for one with other keys than os and arch."""
    expressions = [
        *(
            {"key": key, "operator": "In", "values": [value]}
            for key, value in (selector.get("matchLabels") or {}).items()
        ),
        *(selector.get("matchExpressions") or ()),
    ]
    if not expressions or any(one.get("key") not in ("os", "arch") for one in expressions):
        return []

    def fits(one: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
        values = one.get("values") or ()
        inside = labels[one["key"]] in values
        return {"In": inside, "NotIn": not inside, "Exists": True}.get(str(one.get("operator")), False)

    pairs = ((os, arch) for os, arches in _ARCHITECTURES.items() for arch in sorted(arches))
    return [
        pair for pair in pairs if all(fits(one, dict(zip(("os", "arch"), pair, strict=True))) for one in expressions)
    ]


def _names(path: Path) -> set[str]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            return {name for name in packed.namelist() if not name.endswith("/")}
    with tarfile.open(path) as tar:
        return {entry.name for entry in tar.getmembers() if entry.isfile()}
