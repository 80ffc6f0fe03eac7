"""Results for the files of kustomizations, with their notes; builds them to see the result."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from kubectl_dra.api.schema import FieldPath, path_text
from kubectl_dra.errors import FileError, InputError
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.documents import parse
from kubectl_dra.manifests.files import Rewritten
from kubectl_dra.manifests.inputs import build
from kubectl_dra.manifests.kustomization import Kustomization, closure
from kubectl_dra.manifests.objects import ObjectKey, object_key, title
from kubectl_dra.manifests.source import Source, decode
from kubectl_dra.manifests.style import Style, flow
from kubectl_dra.migrate import codes
from kubectl_dra.migrate.inline_patches import GONE, InlinePatch
from kubectl_dra.migrate.kustomize.build_differences import BuildDifference, DevicePatch, Repair, Repaired
from kubectl_dra.migrate.model import MigratedFile, Remark
from kubectl_dra.text import amount

# Why the files of a kustomization stay as they are, and what to do.

_SHOWN: Final = 120


class BuildObstacle(NamedTuple):
    """What is in the way. ``offered``: no more than that the change is unsafe."""

    problem: str
    way_out: str = codes.WAY_OUT_BUILD
    offered: bool = False


UNKNOWN: Final = BuildObstacle(
    "kubectl is not available to build it, so what its patches do is unknown", "install kubectl or kustomize"
)
UNSEEN: Final = BuildObstacle(
    "no kustomization is built from this patch here, so nobody can see whether its count is kept",
    "give migrate the file as a kustomization, with all that it reads",
)
UNUSED: Final = BuildObstacle(
    "no kustomization that is built here uses this component, so nobody can see what its patches do",
    "give migrate the overlays that use it as well",
)
UNSETTLED: Final = BuildObstacle("what it needs is not what another kustomization needs that reads the same files")


def asking(patch: DevicePatch, *, in_run: bool) -> BuildObstacle:
    """A patch stays and asks for a resource of what would claim devices; ``in_run``: its file may be changed."""
    problem = f"its patch in {shown(patch.file)}:{patch.line} still names {patch.resource}"
    if patch.ignored:
        way_out = "take the comment away, or put one at all that the patch is for"
        return BuildObstacle(f"{problem}, as a comment there says", way_out)
    if not in_run:
        return BuildObstacle(f"{problem}, and is not in this run", "give migrate its directory as well, or -k with it")
    return BuildObstacle(problem, codes.WAY_OUT_PATCH)


def out_of_run(path: str, own: str) -> BuildObstacle:
    """A file would have to be changed that migrate was not given; ``own`` is that of the kustomization itself."""
    what = "that" if path == own else shown(path)
    return BuildObstacle(
        f"{what} would have to be changed as well, but is not in this run",
        "give migrate its directory as well, or -k with it",
    )


def remote(word: str) -> BuildObstacle:
    """It takes something from another repository."""
    return BuildObstacle(
        f"it takes {word} from elsewhere, which is not fetched",
        "name a local copy in its place and migrate both, or change the files by hand and compare what kubectl "
        "kustomize builds before and after",
    )


def of_deployer(problem: str) -> BuildObstacle:
    """An object of Argo CD or Flux would build something else."""
    return BuildObstacle(
        problem, "let a kustomization in the repository set the prefix or the patch instead, and give it to migrate too"
    )


def of_outside(name: str, item: Remark) -> Remark:
    """The refusal for a kustomization that is built from a file outside the run; ``item`` is about that file."""
    message = f"it is built from {shown(item.file)}, which is not in this run and has something to migrate"
    directory = os.path.dirname(name) or "."  # noqa: PTH120
    way_out = f"give migrate that as well, or -k {shlex.quote(directory)}"
    return Remark("refusal", codes.BUILD, name, 1, 1, "Kustomization", "", message, way_out)


def unbuilt(error: str) -> BuildObstacle:
    """It fails before anything is changed."""
    way_out = "make it build (a file that a script makes has to be there), then migrate again"
    return BuildObstacle(f"it cannot be built as it is: {error}", way_out)


def broken(error: str) -> BuildObstacle:
    """It fails with the changed files."""
    return BuildObstacle(f"it could no longer be built: {error}")


def replacing(error: str, part: Kustomization, path: FieldPath, name: str) -> BuildObstacle:
    """A replacement writes the amount of a resource; ``path`` is that of its fieldPath."""
    where = f"{shown(part.path)}:{part.document.position(path).line}"
    return BuildObstacle(
        broken(error).problem,
        f"take the fieldPath in {where} out, which writes the amount of {name}, and migrate again; then let the "
        "replacement write spec.spec.devices.requests.0.exactly.count of the ResourceClaimTemplate",
    )


def unsafe(offer: Remark) -> BuildObstacle:
    """What is built from the files is only changed with ``--unsafe``."""
    return BuildObstacle(f"there: {offer.message}", "", True)


def kindless(overlay: Kustomization, patch: InlinePatch, claim: ObjectKey) -> BuildObstacle:
    """A patch is for objects of any kind, and so for a new one, too."""
    line = overlay.document.position(patch.entry).line
    problem = f"the target of a patch in {shown(overlay.path)}:{line} has no kind, and means the new {_name(claim)} too"
    return BuildObstacle(problem, "write the kind of what it patches into the target")


def refused_there(refusal: Remark) -> BuildObstacle:
    """What is built from the files is refused."""
    return BuildObstacle(f"there: {refusal.message}", refusal.way_out or codes.WAY_OUT_BUILD)


def lacking(difference: BuildDifference, in_run: bool) -> BuildObstacle:
    """A pod got its devices by a patch, and lacks a claim; ``in_run``: the kustomization may be changed."""
    who = _name(difference.object)
    if not in_run:
        problem = f"{who} asks for devices in a patch, and needs a claim in the overlay, which is not in this run"
        return BuildObstacle(problem, "give migrate the overlay's directory as well, or -k with it")
    problem = f"{who} asks for devices in a patch to which migrate cannot add claims"
    return BuildObstacle(problem, "let the base ask for the devices, or write the claims into the overlay by hand")


def of_difference(difference: BuildDifference, built: Iterable[Mapping[str, Any]]) -> BuildObstacle:
    """The new build has something else than it should have."""
    who = _name(difference.object)
    if difference.found is None and difference.claim is not None:
        kind, space, name = difference.claim
        problem = f"{who} would refer to {kind} {name}, which it does not build"
        other = next(
            (key for key in map(object_key, built) if key[0] == kind and key[1] != space and name in key[2]), None
        )
        if other is None:
            return BuildObstacle(problem)
        problem = f"{who} would refer to {kind} {name} in its namespace, and it builds that in {other[1] or 'none'}"
        return BuildObstacle(
            problem, f"let what sets the namespace of the {difference.object[0]} set that of {kind}s too"
        )
    words = _of_claims(difference.found, difference.wanted) if difference.claim is not None else ""
    if words:
        return BuildObstacle(f"{who} would {words}")
    where = f": {path_text(difference.path)}" if difference.path else ""
    return BuildObstacle(f"{who}{where} would be {_value(difference.found)} and not {_value(difference.wanted)}")


def _of_claims(built: Any, wanted: Any) -> str:
    """What a claim asks for instead of what it should, as the end of a sentence; empty if that is unclear."""
    there, should = _requests(built), _requests(wanted)
    if not there or there.keys() != should.keys():
        return ""
    for name, (number, others) in should.items():
        has, has_others = there[name]
        of = f" by request {name}" if len(should) > 1 else ""
        if has_others != others:
            return f"ask for other devices{of}: {_value(has_others)} instead of {_value(others)}"
        if has != number:
            return f"ask for {amount(has)}{of} instead of {number}"
    return ""


def _requests(spec: Any) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """The number of devices of each request of a claim or a template, and what else it says, by name; empty where one
    has no plain count.
    """
    listed = value_at(spec, ("spec", "devices", "requests")) or value_at(spec, ("devices", "requests")) or ()
    out: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for request in listed:
        exactly = request.get("exactly", {key: value for key, value in request.items() if key != "name"})
        count = exactly.get("count", 1)
        if not isinstance(count, int) or exactly.get("allocationMode") == "All" or "firstAvailable" in request:
            return {}
        out[str(request.get("name"))] = count, {key: exactly[key] for key in exactly if key != "count"}
    return out


def shown(path: str) -> str:
    """A path for people: relative if it is below the working directory."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def name_of(overlay: Kustomization) -> str:
    """What people call a kustomization: its file, or the object that it stands for."""
    return overlay.deployer or shown(overlay.path)


def _name(key: ObjectKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    text = value if isinstance(value, str) else flow(value, Style())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# Kustomizations that share changed files, which are changed together or not at all.


class Group(Struct):
    """Kustomizations that share changed files, dependencies first.

    ``texts`` are the new texts of the changed files by absolute path, ``said`` what to report about them.
    """

    kustomizations: list[Kustomization]
    texts: dict[str, Source]
    said: dict[str, list[Remark]] = field(default_factory=dict)


Stopped = tuple[Kustomization, BuildObstacle]
"""The kustomization for which a group stays as it is, and why."""


def groups_of(kustomizations: Sequence[Kustomization], texts: Mapping[str, Source]) -> list[Group]:
    """The kustomizations, grouped by the changed files that they share."""
    out: list[Group] = []
    for overlay in kustomizations:
        mine = {path: texts[path] for part in closure(overlay) for path in part.files if path in texts}
        joined = [group for group in out if group.texts.keys() & mine.keys()]
        kept = [group for group in out if group not in joined]
        members = [*(kustomization for group in joined for kustomization in group.kustomizations), overlay]
        merged = {path: text for group in joined for path, text in group.texts.items()}
        out = [*kept, Group(members, {**merged, **mine})]
    return out


PATCHED: Final = "MIG110"
NAMES: Final = "MIG139"
OVERLAY_CLAIMS: Final = "MIG127"
TEXT: Final = "MIG123"
"""A text is not changed: reported for patches until a build shows what must go from them."""


_SAID: Final[Mapping[Repair, tuple[str, str, str]]] = {
    "counts": (PATCHED, "patches", "the devices that a patch here asked for or chose are in a patch of the claim now"),
    "claims": (
        OVERLAY_CLAIMS,
        "",
        "the overlay asks for devices that its base does not ask for: it has claims of its own",
    ),
    "labels": (GONE, "", "labels of the patch choose devices; the claim says that now"),
    "fits": (GONE, "", "a JSON patch is about requests or labels that what it patches no longer has"),
    "pods": (
        PATCHED,
        "patches",
        "its patches change what pods ask for, so another patch says now which claims they use",
    ),
    "unused": (PATCHED, "patches", "no pod uses the claim template here, so a patch deletes it"),
    "namespaces": (
        NAMES,
        "replacements",
        "replacements that give the workload its namespace give it to its claims, too",
    ),
    "names": (
        NAMES,
        "configurations",
        "kustomize gives claims other names here; this says where workloads refer to them",
    ),
}
"""The code, field and message of each repair."""


def remarks(repaired: Repaired, name: str) -> list[Remark]:
    """What is said of a repair in a file."""
    if repaired.objects:
        message = "which devices, and how many, is in the claim now, which the overlay patches with all of its requests"
        return [
            Remark("object", PATCHED, name, 1, 1, title(raw), "", message, new=title(raw), document=document, root=root)
            for root, document, raw in repaired.objects
        ]
    code, field, message = _SAID[repaired.does]
    return [Remark("change", code, name, 1, 1, "Kustomization" if field else "", field, message)]


def put(group: Group, files: dict[str, MigratedFile], names: Mapping[str, str]) -> None:
    for path, text in group.texts.items():
        old = files.get(path)
        name = names.get(path, text.name)
        source = old.text.source if old is not None and old.text is not None else original(path, name)
        more = group.said.get(path, ())
        kept = old.items if old is not None else ()
        if any(item.code == OVERLAY_CLAIMS for item in more):
            kept = tuple(item for item in kept if item.code != GONE)
        if any(item.code == GONE for item in more):
            kept = tuple(item for item in kept if item.code != TEXT)
        items = (*kept, *more)
        files[path] = MigratedFile(name, Rewritten(name, source.text, text.text, source), items)


def original(path: str, name: str) -> Source:
    try:
        return decode(Path(path).read_bytes(), name)
    except (OSError, InputError):
        return Source(name, "")


def put_back(group: Group, files: dict[str, MigratedFile], names: Mapping[str, str], stopped: Stopped) -> None:
    """Leave all files of a group unchanged."""
    at, obstacle = stopped
    place = names.get(at.path, name_of(at))
    for path in group.texts:
        old = files.get(path)
        if old is not None and old.changed:
            files[path] = without_changes(old, place, obstacle)


def without_changes(file: MigratedFile, place: str, obstacle: BuildObstacle) -> MigratedFile:
    """A file as it was, with the reason for that."""
    assert file.text is not None
    kept = [item for item in file.items if item.sort in ("refusal", "offer")]
    if file.main_change is not None:
        kept.append(_left(file.main_change, place, obstacle))
    source = file.text.source
    return MigratedFile(file.name, Rewritten(file.name, source.text, source.text, source), tuple(kept))


def _left(item: Remark, place: str, obstacle: BuildObstacle) -> Remark:
    """The change that is not made, with the reason. ``place`` is the kustomization that is built from it, if any."""
    itself = place in ("", item.file)
    message = f"left as it is: {obstacle.problem if itself else f'{place} is built from it, and {obstacle.problem}'}"
    if obstacle.offered:
        return item._replace(sort="offer", message=message, safety="unsafe")
    return item._replace(sort="refusal", code=codes.BUILD, message=message, way_out=obstacle.way_out, safety="safe")


# Builds kustomizations in a copy of their files, some of which have other texts.


def can_build() -> bool:
    """Whether kubectl or kustomize is on the PATH."""
    return shutil.which("kubectl") is not None or shutil.which("kustomize") is not None


class Workshop:
    """A copy of the files of kustomizations below ``folder``; the caller removes it.

    What the kustomizations take from elsewhere is left out of the copy: a build fetches nothing.
    """

    def __init__(self, folder: str, kustomizations: Iterable[Kustomization]) -> None:
        self._folder = folder
        self._remote: dict[str, tuple[str, ...]] = {}
        for overlay in kustomizations:
            for part in closure(overlay):
                if part.remote:
                    self._remote[part.path] = part.remote
                for link, target in part.links:
                    copy = self._copy(link)
                    if not os.path.lexists(copy):
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        copy.symlink_to(self._copy(target))
                if part.deployer:
                    self._copy(part.directory).mkdir(parents=True, exist_ok=True)
                    self._copy(part.path).write_text(part.document.source.text)
                for path in part.files - ({part.path} if part.deployer else set()):
                    copy = self._copy(path)
                    if not copy.exists():
                        copy.parent.mkdir(parents=True, exist_ok=True)
                        copy.write_bytes(self._local(path, Path(path).read_bytes()))

    def _copy(self, path: str) -> Path:
        return Path(self._folder + path)

    def put(self, files: Mapping[str, bytes]) -> None:
        """Give files (absolute paths) other contents."""
        for path, data in files.items():
            copy = self._copy(path)
            if copy.parent.is_dir():
                copy.write_bytes(self._local(path, data))

    def _local(self, path: str, data: bytes) -> bytes:
        """The text of a file without what it takes from elsewhere."""
        remote = self._remote.get(path, ())
        if not remote:
            return data
        raw = dict(parse(decode(data, path))[0].object)
        for key in ("resources", "bases"):
            if isinstance(raw.get(key), list):
                raw[key] = [resource for resource in raw[key] if resource not in remote]
        return json.dumps(raw).encode()

    def all_built(self, kustomizations: Sequence[Kustomization]) -> Iterator[tuple[Kustomization, bytes | str]]:
        """Like ``built``, for several in parallel: most of the time is spent waiting for the program."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            yield from zip(kustomizations, pool.map(self.built, kustomizations), strict=True)

    def built(self, overlay: Kustomization) -> bytes | str:
        """What the kustomization builds, or why it fails."""
        try:
            return build(str(self._copy(overlay.directory)))
        except FileError as error:
            return error.problem.replace(self._folder, "")
