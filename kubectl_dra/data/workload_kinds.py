"""Whether the claims of a custom kind reach its pods, by the versions of its controller: ``workload_kinds.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from msgspec import Struct, convert

from kubectl_dra.api.releases import GROUP
from kubectl_dra.data.drivers import table


class WorkloadKind(Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of the claims of some kinds (GROUP/KIND), in some versions of their API and some modes; none: all.

    ``since`` is the first release of the controller that keeps claims; an empty one stands for all releases. ``loses``
    are the fields that do not reach the pod: a webhook refuses them if ``refused``, otherwise they are dropped.
    ``why`` is the reason for which a request in it cannot be moved to claims, and ``way_out`` what to do instead;
    ``partly``: not so in its pod templates. ``undecided`` is what to say if the object does not say its mode.
    """

    kinds: Sequence[str]
    source: str
    versions: Sequence[str] = ()
    modes: Sequence[str] = ()
    since: str = ""
    loses: Sequence[str] = ()
    refused: bool = False
    why: str = ""
    way_out: str = ""
    partly: bool = False
    undecided: str = ""


@cache
def workload_kinds() -> Mapping[tuple[str, str], Sequence[WorkloadKind]]:
    """The rows of each group and kind, in order."""
    rows: dict[tuple[str, str], list[WorkloadKind]] = {}
    for row in convert(table("workload_kinds.yaml"), list[WorkloadKind]):
        for name in row.kinds:
            group, _, kind = name.rpartition("/")
            rows.setdefault((group, kind), []).append(row)
    return rows


def workload_kind(group: str, kind: str, version: str, mode: str) -> WorkloadKind | None:
    """The row for an object of a version of the kind, in a mode; None for Kubernetes' own and unknown kinds."""
    # Most files have none of these, and need not wait for the table.
    custom = "." in group and group != GROUP
    rows = workload_kinds().get((group, kind), ()) if custom else ()
    fitting = (row for row in rows if not row.versions or version in row.versions)
    return next((row for row in fitting if not row.modes or mode in row.modes), None)
