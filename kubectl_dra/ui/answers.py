"""What ``explain`` says of a pod or claim on the screen, with what is supposed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubectl_dra.errors import InputError
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.overview import Overview
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.pod_selectors import check_selectors
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.explain.question.what_if_flag import Supposition, suppose
from kubectl_dra.explain.rivals import with_rivals
from kubectl_dra.ui.source import ScreenSource
from kubectl_dra.ui.tables import Asked, Picture


def answer(source: ScreenSource, seen: Picture, asked: Asked, changes: Sequence[Supposition]) -> Diagnosis:
    """The diagnosis, as ``kubectl dra explain`` makes it.

    Raises:
        DraError: the object is gone, a change that cannot be supposed, a cluster that does not answer.
    """
    snapshot, key = seen.snapshot, (asked.namespace, asked.name)
    if asked.kind == "pod":
        pod = snapshot.pods.get(key)
        if pod is None:
            raise InputError(f"Pod {asked.namespace}/{asked.name} does not exist any more")
        check_selectors(pod)
        question = about_pod(pod, snapshot, exists=True)
        snapshot = source.completed(snapshot, [pod], everything=False)
    else:
        claim = snapshot.claims.get(key)
        if claim is None:
            raise InputError(f"ResourceClaim {asked.namespace}/{asked.name} does not exist any more")
        question = about_claim(claim)
    question, snapshot = suppose(question, snapshot, changes)
    settings = replace(seen.settings, supposed=tuple(changes))
    return with_rivals(diagnose(question, snapshot, settings), question, snapshot, settings)


def known(overview: Overview | None, asked: Asked) -> Diagnosis | None:
    """The diagnosis that the list of what is pending was made from, without proved changes; None if there is none."""
    name = f"{asked.kind}/{asked.name}"
    for alike in overview.found if overview is not None else ():
        if alike.names[0] == name and alike.diagnosis.namespace == asked.namespace:
            return alike.diagnosis
    return None
