"""Whether a cluster acts on DeviceTaintRules, and what to switch on if it does not."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubectl_dra.api.releases import GROUP, RULES_UNSEEN, Release, first_release, gate_default, versions_of
from kubectl_dra.cluster.client import Answered, Client
from kubectl_dra.cluster.live import ApiServer
from kubectl_dra.errors import ClusterError

KIND: Final = "DeviceTaintRule"
_FIRST: Final = first_release(KIND)
_GATES: Final = ("DRADeviceTaints", "DRADeviceTaintRules")
_METRIC = re.compile(r'^kubernetes_feature_enabled\{name="(DRADeviceTaint(?:s|Rules))"[^}]*\} ([01])', re.MULTILINE)


class Serving(NamedTuple):
    """The API version to use, the release, and whether the gates are known to be on."""

    version: str
    release: Release | None
    gates_known: bool


def require_rules(cluster: ApiServer) -> Serving:
    """Find the newest version in which DeviceTaintRules are served.

    Raises:
        ClusterError: they are not served, or their feature gate is off; says what to switch on.
    """
    release = cluster.release()
    version = cluster.dra_versions().get(KIND)
    if version is None:
        raise ClusterError(f"{cluster.server} does not serve devicetaintrules.{GROUP}: {how_to_turn_on(release)}")
    gates = gates_of(cluster.client)
    off = [gate for gate in _GATES if gates.get(gate) is False]
    if off:
        raise ClusterError(
            f"{cluster.server} serves devicetaintrules.{GROUP}/{version}, but nothing acts on them with feature gate "
            f"{' and '.join(off)} off: {how_to_turn_on(release)}"
        )
    return Serving(version, release, bool(gates))


def how_to_turn_on(release: Release | None) -> str:
    """What an administrator of that release must set so that DeviceTaintRules are served and take effect."""
    if release is None:
        return "the server does not say its release; Kubernetes 1.37 serves them, 1.33 to 1.36 when asked to"
    if not versions_of(KIND, release):
        return f"Kubernetes {release} does not have them; {_FIRST} is the first that does, 1.37 serves them always"
    version = versions_of(KIND, release)[0]
    gates = [gate for gate in _GATES if gate_default(gate, release) is False]
    if not gates and version == "v1":
        return (
            f"Kubernetes {release} does by default; see --runtime-config of kube-apiserver and --feature-gates of "
            "kube-apiserver, kube-scheduler and kube-controller-manager"
        )
    flags = ",".join(f"{gate}=true" for gate in gates)
    return (
        f"on Kubernetes {release} start kube-apiserver with --runtime-config={GROUP}/{version}=true, and "
        f"kube-apiserver, kube-scheduler and kube-controller-manager with --feature-gates={flags}"
    )


def version_assumed(release: Release) -> str:
    """The newest version in which a release can serve rules; for one that has none, the first that ever did."""
    return (versions_of(KIND, release) or versions_of(KIND, _FIRST))[0]


def gates_of(client: Client) -> dict[str, bool]:
    """The gates for taints according to the API server's metrics; empty if these may not be read."""
    try:
        text = client.text("/metrics")
    except (Answered, ClusterError):
        return {}
    return {name: value == "1" for name, value in _METRIC.findall(text)}


def undetermined(serving: Serving) -> str:
    """A note if it is invisible whether anything acts on rules; empty if it is visible or the default."""
    release = serving.release
    if serving.gates_known or (release is not None and all(gate_default(gate, release) for gate in _GATES)):
        return ""
    gate = next((name for name in _GATES if release is None or gate_default(name, release) is False), _GATES[1])
    return (
        f"undetermined whether anything acts on the rule: feature gate {gate} cannot be seen without the right to "
        "get /metrics, and it is off by default; a status of the rule after some seconds shows that it is on"
    )


def blind_scheduler(release: Release | None) -> str:
    """A warning if this release's scheduler may crash on rules; otherwise empty."""
    if release is None or not RULES_UNSEEN.affects(release, release.patch):
        return ""
    return (
        f"kube-scheduler {release}.{release.patch} does not see DeviceTaintRules, and may crash at the next change of "
        f"a ResourceSlice while there is one ({RULES_UNSEEN.reference}, "
        f"fixed in {RULES_UNSEEN.fixed_in(release.minor)}); eviction works"
    )
