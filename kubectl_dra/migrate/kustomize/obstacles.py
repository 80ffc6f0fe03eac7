"""Why the files of a kustomization stay as they are, and what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.fields import path_text
from kubectl_dra.manifests.changes import value_at
from kubectl_dra.manifests.objects import ObjectKey, object_key
from kubectl_dra.manifests.style import Style, flow
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.kustomize.asking import AskingPatch
from kubectl_dra.migrate.kustomize.difference import BuildDifference
from kubectl_dra.migrate.result import Remark
from kubectl_dra.wording import amount

_SHOWN: Final = 120


class BuildObstacle(NamedTuple):
    """What is in the way. ``offered``: no more than that the change is unsafe."""

    problem: str
    way_out: str = refusals.WAY_OUT_BUILD
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


def refused(why: str) -> BuildObstacle:
    """What it needs cannot be written."""
    return BuildObstacle(why)


def asking(patch: AskingPatch, *, in_run: bool) -> BuildObstacle:
    """A patch stays and asks for a resource of what would claim devices; ``in_run``: its file may be changed."""
    problem = f"its patch in {shown(patch.file)}:{patch.line} still names {patch.resource}"
    if patch.ignored:
        way_out = "take the comment away, or put one at all that the patch is for"
        return BuildObstacle(f"{problem}, as a comment there says", way_out)
    if not in_run:
        return BuildObstacle(f"{problem}, and is not in this run", "give migrate its directory as well, or -k with it")
    return BuildObstacle(problem, refusals.WAY_OUT_PATCH)


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


def unbuilt(error: str) -> BuildObstacle:
    """It fails before anything is changed."""
    way_out = "make it build (a file that a script makes has to be there), then migrate again"
    return BuildObstacle(f"it cannot be built as it is: {error}", way_out)


def broken(error: str) -> BuildObstacle:
    """It fails with the changed files."""
    return BuildObstacle(f"it could no longer be built: {error}")


def unsafe(offer: Remark) -> BuildObstacle:
    """What is built from the files is only changed with ``--unsafe``."""
    return BuildObstacle(f"there: {offer.message}", "", True)


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


def _of_claims(found: Any, wanted: Any) -> str:
    """What a claim asks for instead of what it should, as the rest of a sentence; empty where that is not clear."""
    there, should = _requests(found), _requests(wanted)
    if not there or there.keys() != should.keys():
        return ""
    for name, request in should.items():
        other = there[name]
        of = f" by request {name}" if len(should) > 1 else ""
        if other.others != request.others:
            return f"ask for other devices{of}: {_value(other.others)} instead of {_value(request.others)}"
        if other.number != request.number:
            return f"ask for {amount(other.number)}{of} instead of {request.number}"
    return ""


class _Request(NamedTuple):
    """The number of devices that a request is for, and what else it says."""

    number: int
    others: Mapping[str, Any]


def _requests(spec: Any) -> dict[str, _Request]:
    """The requests of a claim or a template by name; empty where one has no plain count."""
    listed = value_at(spec, ("spec", "devices", "requests")) or value_at(spec, ("devices", "requests")) or ()
    out: dict[str, _Request] = {}
    for entry in listed:
        exactly = entry.get("exactly", {key: value for key, value in entry.items() if key != "name"})
        count = exactly.get("count", 1)
        if not isinstance(count, int) or exactly.get("allocationMode") == "All" or "firstAvailable" in entry:
            return {}
        out[str(entry.get("name"))] = _Request(count, {key: exactly[key] for key in exactly if key != "count"})
    return out


def shown(path: str) -> str:
    """A path for people: relative if it is below the working directory."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _name(key: ObjectKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    text = value if isinstance(value, str) else flow(value, Style())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
