"""The Kubernetes assumed for a cluster: what the user says about it, else what the objects show."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.api.releases import EXPLAINED, UNTOLD, Release, default_features
from kubectl_dra.cli.release import named_gates, named_release, with_gates
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.proved_gates import proved, taken_on
from kubectl_dra.scheduling.scheduler import Scheduler


def assumed(snapshot: Snapshot, release: str = "", gates: Sequence[str] = ()) -> Settings:
    """The release and feature gates to assume, and their source.

    ``release`` and ``gates`` are the texts of --kubernetes-version and --feature-gates.

    Raises:
        UsageError: a malformed or unknown release or gate.
    """
    assumed_release, source, patch = _release(snapshot, release)
    defaults = default_features(assumed_release)
    shown = proved(snapshot.slices, defaults, assumed_release, snapshot.claims.values())
    implied = taken_on(snapshot.taint_rules, assumed_release, patch) - shown
    named = dict(named_gates(gates)).keys()
    return Settings(
        Scheduler(assumed_release, with_gates(defaults | shown | implied, gates), patch),
        release_source=source,
        proved_gates=shown - named,
        taken_gates=implied - named,
    )


def _release(snapshot: Snapshot, text: str) -> tuple[Release, str, int | None]:
    """The release, its source, and the patch release if known."""
    if text:
        flag = "--kubernetes-version"
        release = named_release(text, EXPLAINED, "explain models", flag)
        return release, flag, release.patch if text.count(".") > 1 else None
    if snapshot.release is None:
        return UNTOLD, "assumed: the snapshot does not say", None
    release, source = snapshot.release, snapshot.release_source
    patch = release.patch if source == "server" else None
    if release in EXPLAINED:
        return release, source, patch
    return EXPLAINED.closest(release), f"{source}, {release} is not modelled", patch
