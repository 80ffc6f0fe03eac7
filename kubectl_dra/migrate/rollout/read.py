"""Reads a live cluster or files for the survey. Never writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.documents import Skipped, each
from kubectl_dra.manifests.inputs import Input, read
from kubectl_dra.manifests.objects import objects
from kubectl_dra.manifests.source import decode
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, key_of

if TYPE_CHECKING:
    from kubectl_dra.cluster.live import ApiServer
    from kubectl_dra.cluster.snapshot import Progress

WORKLOADS: Final = (
    ("apps/v1", "deployments"),
    ("apps/v1", "statefulsets"),
    ("apps/v1", "daemonsets"),
    ("apps/v1", "replicasets"),
    ("batch/v1", "jobs"),
    ("batch/v1", "cronjobs"),
)
"""Kinds read from a live cluster besides pods, because workloads without pods count as well."""


def live_workloads(
    cluster: ApiServer, namespace: str, progress: Progress | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """The workloads of one namespace or all, and a note for each kind that may not be read.

    Raises:
        ClusterError: the cluster does not answer.
    """
    from kubectl_dra.cluster.client import Answered, segment

    found: list[dict[str, Any]] = []
    notes: list[str] = []
    scope = f"/namespaces/{segment(namespace)}" if namespace else ""
    for version, plural in WORKLOADS:
        try:
            found += cluster.client.list_items(f"/apis/{version}{scope}/{plural}", None, progress)
        except Answered as error:
            notes.append(f"{plural} could not be read, so those without pods are not seen: {error}")
    return found, notes


def file_workloads(inputs: Sequence[Input]) -> Iterator[Mapping[str, Any]]:
    """The workloads in files, without Pods. Unreadable files are skipped."""
    for raw in file_objects(inputs):
        key = key_of(raw)
        if key != ("", "Pod") and (key in TEMPLATES or key in SPECS):
            yield raw


def file_objects(inputs: Sequence[Input]) -> Iterator[Mapping[str, Any]]:
    """Every Kubernetes object in files. Unreadable files are skipped."""
    for found in inputs:
        try:
            documents = [one for one in each(decode(read(found), found.name)) if not isinstance(one, Skipped)]
        except InputError:
            continue
        for document in documents:
            try:
                for one in objects((document,)):
                    yield one.object
            except InputError:
                continue
