"""The Kubernetes assumed for a cluster: its release and gates, as flags, configuration and objects say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubectl_dra.api.releases import EXPLAINED, UNTOLD, Release, Releases, default_features, known_gates, parse_release
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.settings import Settings
from kubectl_dra.scheduling.scheduler import Scheduler, proved, taken_on
from kubectl_dra.text import nearest

_FLAG: Final = "--feature-gates"


def named_release(text: str, known: Releases, does: str, source: str) -> Release:
    """The release requested with ``source``, a flag or a key of a file; ``does`` is the command, for
    messages.

    Raises UsageError: not a release, or an unknown one.
    """
    try:
        release = parse_release(text)
    except ValueError as error:
        raise UsageError(f"{source}: {error}") from None
    if release not in known:
        raise UsageError(f"{source} {text}: {does} {known}")
    return release


def named_gates(texts: Iterable[str], source: str = _FLAG) -> Iterator[tuple[str, bool]]:
    """Maps each gate in texts such as ``A=true,B=false`` to whether it should be on.

    Raises UsageError: a malformed text, or a gate that no release has.
    """
    for item in (part for text in texts for part in text.split(",") if part):
        gate, _, value = item.partition("=")
        if value not in ("true", "false"):
            raise UsageError(f'{source}: "{item}" is not of the form GATE=true or GATE=false')
        if gate not in known_gates():
            near = nearest(gate, known_gates())
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f'{source}: unknown gate "{gate}"{hint}')
        yield gate, value == "true"


def with_gates(defaults: Iterable[str], texts: Iterable[str], source: str = _FLAG) -> frozenset[str]:
    """The enabled gates: the defaults, changed by those that the texts name. Raises UsageError: as ``named_gates``."""
    on = set(defaults)
    for gate, wanted in named_gates(texts, source):
        (on.add if wanted else on.discard)(gate)
    return frozenset(on)


def assumed(snapshot: Snapshot, release: str = "", gates: Sequence[str] = ()) -> Settings:
    """The release and feature gates to assume, and their source.

    ``release`` and ``gates`` are the texts of --kubernetes-version and --feature-gates.

    Raises UsageError: a malformed or unknown release or gate.
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
        release = named_release(text, EXPLAINED, "the scheduler is modelled for", flag)
        return release, flag, release.patch if text.count(".") > 1 else None
    if snapshot.release is None:
        return UNTOLD, "assumed: the snapshot does not say", None
    release, source = snapshot.release, snapshot.release_source
    if release in EXPLAINED:
        return release, source, snapshot.server_patch
    return EXPLAINED.closest(release), f"{source}, {release} is not modelled", snapshot.server_patch
