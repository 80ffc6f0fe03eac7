"""The verdicts of the scheduler's filters on the nodes, regardless of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs
from msgspec.structs import replace

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import ClaimStatus, Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.explain.phrase import Words
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.node_reasons import reason_of
from kubectl_dra.scheduling.chain import Chain, without_devices
from kubectl_dra.scheduling.framework import ClusterState, NodeState
from kubectl_dra.scheduling.node_unschedulable import CORDON, Cordoned
from kubectl_dra.scheduling.profile import Profile
from kubectl_dra.scheduling.reasons import NotRead, Rejection
from kubectl_dra.scheduling.taint_toleration import UntoleratedTaint
from kubectl_dra.scheduling.tolerations import COMPARING, COMPARISON


class Filters(Struct, frozen=True, dict=True):
    """The filters for one pod. ``rejections``: why nodes are refused, for those that are."""

    chain: Chain
    rejections: Mapping[str, Rejection]

    @property
    def reasons(self) -> dict[str, Words]:
        """The rejections in our words."""
        return {name: reason_of(rejection) for name, rejection in self.rejections.items()}

    @property
    def unread(self) -> frozenset[str]:
        """Kinds that affect a node and were not read. What refuses a node of which only the name is known may not."""
        reasons = [reason for rejection in self.rejections.values() for reason in rejection.reasons]
        found = frozenset(reason.kind for reason in reasons if isinstance(reason, NotRead))
        return found | {"Node"} if reasons and self.chain.state.snapshot.is_gap("Node") else found

    def one_step_away(self, node: NodeState) -> bool:
        """Whether exactly one thing keeps the pod off the node; a cordon with its own taint counts as one."""
        if self.chain.rejection is not None or node.name not in self.rejections:
            return False
        found = self.chain.every(node)
        if len(found) == 2 and isinstance(found[0].reasons[0], Cordoned):
            taint = found[1].reasons[0]
            return isinstance(taint, UntoleratedTaint) and taint.taint.key == CORDON.key
        return len(found) == 1


def filters_of(
    question: Question,
    snapshot: Snapshot,
    nodes: Sequence[Node],
    release: Release,
    gates: frozenset[str],
    patch: int | None,
    profile: Profile | None = None,
) -> Filters | None:
    """The verdicts of a profile's filters (None: the default profile); None if nothing is to be scheduled."""
    pod = question.pod
    if pod is None or pod.node_name:
        return None
    if len(nodes) != len(snapshot.nodes):
        snapshot = replace(snapshot, nodes={node.name: node for node in nodes} | dict(snapshot.nodes))
    asked, cluster = _as_created(question, pod, Cluster(snapshot))
    state = ClusterState(
        cluster,
        release,
        gates | proved_by_pods(asked, snapshot, stored=question.exists),
        patch,
        profile,
    )
    chain = Chain(asked, state, without_devices(state.profile))
    found = {name: chain.filter(node) for name, node in state.nodes.items()}
    return Filters(chain, {name: rejection for name, rejection in found.items() if rejection is not None})


def _as_created(question: Question, pod: Pod, cluster: Cluster) -> tuple[Pod, Cluster]:
    """The pod and the cluster after the claim controller made the claims that do not exist yet."""
    made = {entry.entry: entry.claim for entry in question.claims if entry.hypothetical and entry.claim is not None}
    if not made:
        return pod, cluster
    statuses = [entry for entry in pod.status.resource_claim_statuses if entry.name not in made]
    statuses += [ClaimStatus(name, claim.metadata.name) for name, claim in made.items()]
    asked = structs.replace(pod, status=structs.replace(pod.status, resource_claim_statuses=tuple(statuses)))
    return asked, cluster.editing(*made.values())


def proved_by_pods(pod: Pod, snapshot: Snapshot, *, stored: bool) -> frozenset[str]:
    """Feature gates of the filters that pods show to be on: where one is off, the server refuses its values.

    ``stored``: the pod itself is in the cluster.
    """
    if not _compares(pod):
        return frozenset()
    found = stored or any(_compares(other) for other in snapshot.pods.values())
    return frozenset((COMPARISON,)) if found else frozenset()


def _compares(pod: Pod) -> bool:
    return any(entry.operator in COMPARING for entry in pod.spec.tolerations)
