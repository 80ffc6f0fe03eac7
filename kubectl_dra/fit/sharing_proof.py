"""Which ways of sharing let all pods run: each is written, linted, and its pods are placed on the cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kubectl_dra.api.slices import Device
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.diagnosis import Verdict
from kubectl_dra.explain.settings import Settings
from kubectl_dra.fit.answer import FitOptions, fit
from kubectl_dra.fit.existing import pods_of
from kubectl_dra.fit.result import WorkloadFit
from kubectl_dra.fit.sharing import SharingWay, SharingWriter, WrittenWay
from kubectl_dra.fit.workload import WorkloadPods, workloads_of

Progress = Callable[[str], None]
Applied = Callable[[Snapshot], Snapshot]
"""The cluster after its API server applied a manifest."""
_MEANT: Final = ("DRA404", "DRA608", "DRA803")
"""Rules about what a way is for, or what it needs and says: a shared claim, a driver's gate, a namespace's label."""
MOST_TRIED: Final = 8
"""Manifests of a way that are tried."""


class TriedWay(Struct, frozen=True):
    """A way, how many pods of how many get a node with it, and what linting says. No ``fit``: it was not tried."""

    written: WrittenWay
    fit: WorkloadFit | None = None
    findings: tuple[str, ...] = ()

    @property
    def works(self) -> bool:
        """Whether all pods run."""
        return self.fit is not None and self.fit.verdict is Verdict.SCHEDULABLE

    @property
    def placed(self) -> int:
        """How many pods get a node, or have it."""
        return self.fit.placed if self.fit is not None else 0


def matching_devices(name: str, snapshot: Snapshot, settings: Settings) -> tuple[list[Device], list[Device]]:
    """All devices of the cluster, and those that a class admits."""
    exact = snapshot.exact()
    cycle = settings.scheduler.cycle(exact)
    found = exact.classes.get(name)
    devices = [device for entry in exact.slices for device in entry.devices]
    if found is None:
        return devices, []
    return devices, cycle.selectors.accepted(filter(None, found.selectors), devices)


def tried(
    writer: SharingWriter,
    ways: Sequence[SharingWay],
    part: str,
    snapshot: Snapshot,
    namespace: str,
    settings: Settings,
    applied: Applied,
    progress: Progress,
) -> list[TriedWay]:
    """Each way as the first of its manifests with which all pods run, else the one with most."""
    out = []
    for way in ways:
        best: TriedWay | None = None
        for number, written in enumerate(writer.write(way, part)):
            if number == MOST_TRIED:
                break
            found = _tried(written, snapshot, namespace, settings, applied, progress)
            if best is None or found.placed > best.placed:
                best = found
            if best.works:
                break
        assert best is not None
        out.append(best)
    return out


def _tried(
    written: WrittenWay,
    snapshot: Snapshot,
    namespace: str,
    settings: Settings,
    applied: Applied,
    progress: Progress,
) -> TriedWay:
    if written.impossible:
        return TriedWay(written)
    findings = _linted(written.text, snapshot, settings)
    manifest = read_snapshot(["-"], namespace=namespace, stdin=written.text.encode(), workloads=True)
    cluster = applied(manifest)
    workload = _sharing(workloads_of(manifest))
    # Pods of the workload that run already are made anew: their claims are others.
    cluster = Cluster(cluster).ending(pods_of(workload, cluster)).snapshot
    answer = fit([workload], cluster, settings, FitOptions(changes=False), progress)
    return TriedWay(written, answer.workloads[0], findings)


def _sharing(workloads: Sequence[WorkloadPods]) -> WorkloadPods:
    """The workload with claims."""
    return next(one for one in workloads if any(role.pod.claims for role in one.roles))


def _linted(text: str, snapshot: Snapshot, settings: Settings) -> tuple[str, ...]:
    """What our own rules say of it: errors, and warnings."""
    from kubectl_dra.lint.check_file import Job
    from kubectl_dra.lint.config import Selection
    from kubectl_dra.lint.context import AssumedCluster
    from kubectl_dra.lint.engine import lint
    from kubectl_dra.manifests.inputs import STDIN_NAME, Input

    target = AssumedCluster(settings.scheduler.release.without_patch, settings.scheduler.gates, snapshot)
    report = lint([Input(STDIN_NAME, True, text.encode())], Job(target, Selection()), processes=1)
    told = (one for one in report.findings if one.severity in ("error", "warning") and one.code not in _MEANT)
    return tuple(f"{one.code}: {one.message}" for one in told)
