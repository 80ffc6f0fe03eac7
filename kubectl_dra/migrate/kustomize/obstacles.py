"""Why the files of a kustomization stay as they are, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.api.fields import path_text
from kubectl_dra.manifests.objects import ObjectKey, object_key
from kubectl_dra.manifests.style import Style, flow
from kubectl_dra.migrate import refusals
from kubectl_dra.migrate.kustomize.difference import BuildDifference
from kubectl_dra.migrate.result import Remark

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
    where = f": {path_text(difference.path)}" if difference.path else ""
    return BuildObstacle(f"{who}{where} would be {_value(difference.found)} and not {_value(difference.wanted)}")


def _name(key: ObjectKey) -> str:
    kind, namespace, name = key
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _value(value: Any) -> str:
    if value is None:
        return "missing"
    text = value if isinstance(value, str) else flow(value, Style())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
