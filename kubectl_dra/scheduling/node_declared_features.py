"""NodeDeclaredFeatures (KEP-5328): features that the pod needs from the kubelet, and those that the node declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from kubectl_dra.api.behaviour import OWN_USERS_DECLARED, RESTARTS_DECLARED, Behaviour
from kubectl_dra.api.pods import Pod
from kubectl_dra.scheduling.framework import ClusterState, NodeState, Plugin
from kubectl_dra.scheduling.reasons import PluginName, Reason, Rejection

GATE: Final = "NodeDeclaredFeatures"


class FeaturesNotDeclared(Reason, frozen=True):
    """Features that the pod needs and the node does not declare."""

    features: tuple[str, ...]

    @property
    def words(self) -> str:
        return "node(s) didn't match Pod's required features"


class _Feature(NamedTuple):
    """A feature, the releases whose scheduler checks it, and which pods need it."""

    name: str
    checked: Behaviour
    needed: Callable[[Pod], bool]


def _restarts_all(pod: Pod) -> bool:
    return any(
        rule.action == "RestartAllContainers" for container in pod.containers for rule in container.restart_policy_rules
    )


def _own_users_on_host_network(pod: Pod) -> bool:
    return pod.spec.host_network and pod.spec.host_users is False


_FEATURES: Final = (
    _Feature("RestartAllContainersOnContainerExits", RESTARTS_DECLARED, _restarts_all),
    _Feature("UserNamespacesHostNetworkSupport", OWN_USERS_DECLARED, _own_users_on_host_network),
)


class NodeDeclaredFeatures(Plugin):
    """Refuses nodes that do not declare a feature that the pod's spec needs."""

    name = PluginName.NODE_DECLARED_FEATURES

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._needed = tuple(entry.name for entry in _FEATURES if state.release in entry.checked and entry.needed(pod))
        self.skipped = GATE not in state.gates or not self._needed

    def filter(self, node: NodeState) -> Rejection | None:
        declared = node.node.status.declared_features
        missing = tuple(name for name in self._needed if name not in declared)
        return Rejection(self.name, (FeaturesNotDeclared(missing),)) if missing else None
