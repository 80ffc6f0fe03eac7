"""Where somebody writes a field of a pod: in the pod, or in the template from which its controller makes it."""

from __future__ import annotations

import re
from typing import Final

from kubectl_dra.api.pods import MAKES_AGAIN, Pod, owner_of
from kubectl_dra.cluster.snapshot import stand_in
from kubectl_dra.cluster.time_read import parse
from kubectl_dra.cluster.workload_pods import MAKER_LABELS
from kubectl_dra.explain.phrase import Words, say

_OF_CRON_JOB: Final = re.compile(r"(?P<name>.+)-(?P<minute>[0-9]{8})\Z", re.ASCII)
"""A CronJob calls its Jobs after the minute, counted from 1970, for which they are."""
_AHEAD: Final = 7 * 24 * 60


def place_to_edit(pod: Pod, field: str) -> Words:
    """The path of a field of the pod's ``spec``, and the object that has it if that is not the pod."""
    template = stand_in(pod)
    if template is not None and template.path:
        return say("{path}.{field} of {owner}", path=template.path, field=field, owner=template.workload)
    owner = owner_of(pod)
    if owner is None:
        return say("spec.{field}", field=field)
    for label, kind in MAKER_LABELS.items():
        if name := pod.metadata.labels.get(label):
            return say("{field} in the pod template of {kind} {name}", field=field, kind=kind, name=name)
    words = {"field": field, "kind": owner.kind, "name": owner.name}
    if owner.kind == "Job":
        cron_job = _cron_job(pod, owner.name)
        if cron_job:
            return say("spec.jobTemplate.spec.template.spec.{field} of CronJob {name}", field=field, name=cron_job)
        # Nobody can change the template of a Job.
        return say("spec.template.spec.{field} of Job {name}, created anew", **words)
    if owner.kind in MAKES_AGAIN:
        return say("spec.template.spec.{field} of {kind} {name}", **words)
    return say("{field} in the pod template of {kind} {name}", **words)


def _cron_job(pod: Pod, job: str) -> str:
    """The CronJob that made a Job, by the Job's name; empty if it seems that none did."""
    found = _OF_CRON_JOB.match(job)
    created = parse(pod.metadata.creation_timestamp)
    if found is None or created is None:
        return ""
    return found["name"] if 0 <= created.timestamp() / 60 - int(found["minute"]) < _AHEAD else ""
