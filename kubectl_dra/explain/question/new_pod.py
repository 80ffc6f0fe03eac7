"""A pod from a manifest: what the API server would make of it, and why it would refuse it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubectl_dra.admission import pod_security
from kubectl_dra.admission.admit import admit
from kubectl_dra.admission.known import AdmissionObjects
from kubectl_dra.admission.refusal import Refusal
from kubectl_dra.api.pods import Pod
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.question.resolve import Question, about_pod


def about_new_pod(
    pod: Pod, snapshot: Snapshot, written: Mapping[str, Any] | None = None, invalid: Sequence[Refusal] = ()
) -> Question:
    """The question about a pod to be created, as the API server would store it.

    ``written`` is its manifest, which Pod Security checks. ``invalid`` are fields that the server finds
    invalid.
    """
    space = pod.metadata.namespace
    admission = admit(pod, AdmissionObjects.of(snapshot, space))
    namespace = snapshot.namespaces.get(space)
    insecure = None
    if written is not None and namespace is not None:
        insecure = pod_security.refusal(written, space, namespace.labels)
    question = about_pod(admission.pod, snapshot, exists=False)
    refusals = (*invalid, *admission.refusals, *((insecure,) if insecure else ()))
    return replace(question, refusals=refusals, unread=admission.unread)
