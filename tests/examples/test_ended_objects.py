"""Terminating, ended and orphaned objects are called that by every command, in every example made so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubectl_dra.api.pods import Pod
from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.claim_relation import waiting_for
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.pending_alike import waiting
from kubectl_dra.explain.pipeline import diagnose
from kubectl_dra.explain.question.resolve import about_claim, about_pod
from kubectl_dra.report.explain_words import answer
from kubectl_dra.usage.choices import ClaimState
from kubectl_dra.usage.claim_use import claim_uses

CLUSTERS = sorted((Path(__file__).parents[2] / "examples" / "explain").glob("*/cluster.yaml"))
SINCE = "2026-06-01T00:00:00Z"
OVER = (ClaimState.UNUSED, ClaimState.ENDED, ClaimState.TERMINATING)
"""What ``claims`` calls those that hold devices for nobody who needs them, or not for long."""
MOST = 4
"""Claims of an example, because the clusters of examples are large and their claims alike."""


def terminating(pod: Pod) -> Pod | None:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp=SINCE))


def succeeded(pod: Pod) -> Pod | None:
    return replace(pod, status=replace(pod.status, phase="Succeeded"))


def lost(pod: Pod) -> Pod | None:
    return replace(pod, status=replace(pod.status, phase="Unknown"))


def successor(pod: Pod) -> Pod | None:
    return replace(pod, metadata=replace(pod.metadata, uid=f"{pod.metadata.uid}-later"))


def gone(pod: Pod) -> Pod | None:
    return None


def variants(here: Snapshot) -> Iterator[tuple[str, Snapshot]]:
    """The cluster with what uses each of its claims in other states; the claim's name with each."""
    held = [claim for claim in here.claims.values() if claim.allocation is not None]
    for claim in held[:MOST]:
        yield claim.key, here
        key = (claim.metadata.namespace, claim.metadata.name)
        yield claim.key, replace(here, claims={**here.claims, key: replace(claim, reserved_for=())})
        for make in (terminating, succeeded, lost, successor, gone):
            pods = dict(here.pods)
            for entry in claim.reserved_for:
                at = (claim.metadata.namespace, entry.name)
                made = make(pods.pop(at)) if at in pods else None
                if made is not None:
                    pods[at] = made
            yield claim.key, replace(here, pods=pods, release_source="server" if make is gone else here.release_source)


@pytest.mark.parametrize("path", CLUSTERS, ids=[path.parent.name for path in CLUSTERS])
def test_explain_says_what_claims_says(path: Path) -> None:
    """A claim that is over is no "is allocated" with exit code 0, nor is its pod; any other one is."""
    here = read_snapshot([str(path)])
    settings = replace(assumed(here), with_ways=False)
    for name, changed in variants(here):
        space, _, claim_name = name.partition("/")
        claim = changed.claims[space, claim_name]
        state = next(use.state for use in claim_uses(changed, space).items if use.claim is claim)
        found = diagnose(about_claim(claim), changed, settings)
        awaited = state is ClaimState.UNUSED and bool(waiting_for(claim, changed))
        over = state in OVER and not awaited
        assert found.exit_code == (1 if over else 0), (name, state, answer(found))
        for entry in claim.reserved_for:
            pod = changed.pods.get((space, entry.name))
            if pod is None or pod.metadata.uid != entry.uid:
                continue
            asked = diagnose(about_pod(pod, changed, exists=True), changed, settings)
            assert not (over and asked.exit_code == 0), (name, state, answer(asked))
            assert not (pod.finished and pod in list(waiting(changed, settings)))
