"""Where Kueue runs, and what its pod and its configuration say of it: its release, and whether it counts claims."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubectl_dra.api.pods import Pod, owner_of, version_of
from kubectl_dra.api.releases import parse_release
from kubectl_dra.cluster.kueue_settings import CLAIM_GATES, KueueConfiguration, configuration_of
from kubectl_dra.cluster.snapshot import Key, Snapshot

DEFAULT_SETTINGS: Final = ("kueue-system", "kueue-manager-config")
"""Where Kueue's manifests, and its chart if nothing else is said, put the configuration."""
_CONTROLLER: Final = "-controller-manager"
_SETTINGS: Final = "-manager-config"


class KueueController(NamedTuple):
    """A pod in which Kueue runs, and where its configuration is; ``release`` is empty where its image says none."""

    pod: Pod
    release: str
    settings: Key


def controller_in(pods: Iterable[Pod]) -> KueueController | None:
    """Kueue's controller, by the labels and names that its manifests and its chart give it; None if it is not there."""
    for pod in pods:
        labels = pod.metadata.labels
        owner = owner_of(pod) if labels.get("control-plane") == "controller-manager" else None
        if owner is None or pod.finished or not owner.name.endswith(_CONTROLLER):
            continue
        name = owner.name.removesuffix(_CONTROLLER)
        if "kueue" in (name, labels.get("app.kubernetes.io/name")):
            release = next((version_of(one.image) for one in pod.spec.containers if one.name == "manager"), "")
            return KueueController(pod, release, (pod.metadata.namespace, f"{name}{_SETTINGS}"))
    return None


def controller(snapshot: Snapshot) -> KueueController | None:
    """Kueue's controller, if it is among the pods."""
    return snapshot.derived(_controller)


def _controller(snapshot: Snapshot) -> KueueController | None:
    return controller_in(snapshot.pods.values())


def settings_of(running: KueueController | None) -> Key:
    """The ConfigMap with Kueue's configuration: beside its controller."""
    return DEFAULT_SETTINGS if running is None else running.settings


def configuration(snapshot: Snapshot) -> tuple[Key, KueueConfiguration] | None:
    """Kueue's configuration and the ConfigMap that has it; None if it was not read, wherever Kueue has it."""
    for key, settings in snapshot.others.get("ConfigMap", {}).items():
        if (read := configuration_of(settings)) is not None:
            return key, read
    return None


class ClaimGate(NamedTuple):
    """The feature gate without which Kueue counts no claims: what it is called, and whether it is on.

    ``settings`` is the ConfigMap that sets it; None where it has the default of Kueue's release.
    """

    name: str
    on: bool
    settings: Key | None


def claim_gate(snapshot: Snapshot) -> ClaimGate | None:
    """That gate; None where it is not known: nothing here reads Kueue's command line, which may set it as well."""
    known, running = configuration(snapshot), controller(snapshot)
    if known is None or not known[1].feature_gates:
        return None
    key, gates = known[0], known[1].feature_gates
    for name in CLAIM_GATES:
        if name in gates:
            return ClaimGate(name, gates[name], key)
    # Kueue refuses to start with gates in both places (pkg/config/validation.go).
    try:
        newer = running is not None and parse_release(running.release) >= (0, 18)
    except ValueError:
        return None
    if running is None:
        return None
    return ClaimGate(CLAIM_GATES[not newer], newer, None)
