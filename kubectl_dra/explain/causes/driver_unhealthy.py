"""The driver is broken on a node: its pod crashes, restarts or is gone, or devices that are held are not published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kubectl_dra.api.releases import GROUP, Release, lifecycle
from kubectl_dra.api.slices import NodeScope, PoolID, ResourceSlice
from kubectl_dra.drivers.daemons import failing_replicas
from kubectl_dra.drivers.health import DriverState
from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.devices_published import CLASS_MISSING, NO_SLICES, NOT_FOR_NODE
from kubectl_dra.explain.causes.node_filters import NO_NODE
from kubectl_dra.explain.causes.scale_up import NEW_NODE_SILENT, NO_SCALE_UP, NODE_COMING
from kubectl_dra.explain.causes.selectors import CLASS_MATCHES_NOTHING, SELECTOR_MATCHES_NOTHING
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.driver_refusals import with_gate
from kubectl_dra.explain.from_zero import names_group_without_nodes, scales_from_zero
from kubectl_dra.explain.phrase import ObjectName, Phrase, Subject, Words, known_defect, nodes_named, say
from kubectl_dra.neighbours.operators import not_ready, words_of

if TYPE_CHECKING:
    from kubectl_dra.drivers.health import NodeDriver
    from kubectl_dra.explain.remedies.proof_result import Proof

MAX_NODES: Final = 6
"""Broken nodes on which the pod is tried with what the driver publishes elsewhere."""


_CERTAIN: Final = (DriverState.CRASHING, DriverState.NOT_STARTING, DriverState.NO_POD)
"""States that need no comparison with other nodes."""
_COMING: Final = (DriverState.STARTING, DriverState.ENDING)
"""States of a driver that is about to publish, or whose next pod is."""


_NONE_THERE: Final = (NO_SLICES, NOT_FOR_NODE, NO_NODE, CLASS_MATCHES_NOTHING, SELECTOR_MATCHES_NOTHING)
"""What is said where no node that is there has what the pod asks for."""


def drivers_first(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, before them the broken driver that keeps the pod or claim waiting, if there is one.

    Before that comes a node that is on its way, and where no driver is broken on a node and none publishes such
    devices, an autoscaler that adds none: what else is wrong is said of the nodes that are there.
    """
    first = _with_broken(analysis, findings)
    first = [with_gate(analysis, cause) if cause.kind is CLASS_MATCHES_NOTHING else cause for cause in first]
    first = _with_operator(analysis, first)
    ahead = [NODE_COMING]
    if first and first[0].kind is not UNHEALTHY:
        ahead.append(NEW_NODE_SILENT)
    if any(finding.kind is NO_SCALE_UP for finding in first[1:]) and first[0].kind in _NONE_THERE:
        by_label = first[0].kind is NO_NODE and names_group_without_nodes(analysis)
        if not first[0].under_way and (by_label or scales_from_zero(analysis)):
            ahead.append(NO_SCALE_UP)
    return sorted(first, key=lambda finding: finding.kind not in ahead)


def _with_operator(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; of a driver that publishes nothing, with what its operator says where that is not ready."""
    out: list[Finding] = []
    for finding in findings:
        if finding.kind in (NO_SLICES, UNHEALTHY):
            for driver in sorted(analysis.wanted_drivers):
                if (broken := not_ready(driver, analysis.snapshot)) is not None:
                    kind, policy = broken
                    words = words_of(policy)
                    why = say(": {said}", said=words) if words else ""
                    said = say("{state}{why}", state=policy.status.state, why=why)
                    name = ObjectName(kind, policy.metadata.name)
                    fact = Evidence(Subject(kind.partition(".")[0], name), "status.state", said)
                    finding = replace(finding, evidence=(fact, *finding.evidence))
                    break
        out.append(finding)
    return out


def _with_broken(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    snapshot = analysis.snapshot
    counted = bool(analysis.attempts) or all(finding.kind in (NO_SLICES, CLASS_MISSING) for finding in findings)
    if not findings or not analysis.claims or not counted or any(finding.kind.passes for finding in findings):
        # Where something else ends the attempt first, no driver does.
        return list(findings)
    daemons_read = "DaemonSet" in snapshot.others or any(failing_replicas(snapshot))
    if not daemons_read and not snapshot.has_plugins:
        return list(findings)
    from kubectl_dra.drivers.drivers_on_nodes import joined

    wanted = analysis.wanted_drivers
    # Of what is wanted and nowhere, and of what the kubelet does not reach, other causes say more.
    rows = [r for r in joined(snapshot).rows if r.driver in wanted and not r.wanted_by and r.failing is None]
    publishing = {slice_.driver for slice_ in snapshot.slices if slice_.devices}
    absent = [row for row in rows if row.driver not in publishing and (row.state.broken or row.state in _COMING)]
    rows = [row for row in rows if row.state.broken or row.left_out is not None]
    if absent:
        own = [row for row in absent if row.driver == absent[0].driver]
        others = [finding for finding in findings if finding.kind is not NO_SLICES]
        silent = next((finding for finding in findings if finding.kind is NO_SLICES), None)
        if silent is not None and silent.under_way is not None:
            # A node that has just started is no broken one.
            return list(findings)
        nowhere = not own[0].node and (own[0].daemon is None or not own[0].daemon.failure)
        # A driver runs nowhere where its group has no node.
        before = [finding for finding in others if nowhere and finding.kind is NO_SCALE_UP]
        after = [finding for finding in others if finding not in before]
        missing = any(finding.kind is CLASS_MISSING for finding in findings)
        return [*before, _finding(own, None, silent, analysis, missing=missing), *after]
    for row in [row for row in rows if row.labelled or row.state in _CERTAIN][:MAX_NODES]:
        proof = _proof(analysis, row)
        if proof is not None:
            return [_finding([row], proof, None, analysis), *findings]
    return list(findings)


def awaited(analysis: Analysis, findings: Sequence[Finding]) -> Iterator[Phrase]:
    """A driver that has just started on a node and publishes nothing there yet, if the pod would fit there then.

    Whether the node has any of its devices is not known: it may be that of the likes, or none.
    """
    snapshot = analysis.snapshot
    if not findings or not analysis.attempts or any(finding.kind in (UNHEALTHY, NO_SLICES) for finding in findings):
        return
    if not snapshot.has_plugins:
        return
    from kubectl_dra.drivers.drivers_on_nodes import joined

    wanted = analysis.wanted_drivers
    for row in [row for row in joined(snapshot).rows if row.state is DriverState.STARTING][:MAX_NODES]:
        if row.driver in wanted and row.pod is not None and not row.devices and _proof(analysis, row) is not None:
            text = (
                "driver {driver} on node {node} is starting (its pod has been running since {since}) and has published "
                "nothing; with the devices that it has on {like} the pod would fit there"
            )
            words = {"driver": row.driver, "since": row.pod.since, "like": ObjectName("Node", row.likes[0])}
            yield say(text, node=ObjectName("Node", row.node), **words)


def _proof(analysis: Analysis, row: NodeDriver) -> Proof | None:
    """The proof that the pod fits on the node once the driver publishes there what it publishes on its likes."""
    node = analysis.view.node_by_name.get(row.node)
    if node is None or not row.likes or row.devices >= row.usual:
        return None
    snapshot = analysis.snapshot
    like = row.likes[0]
    copies = [_copied(slice_, row.node) for slice_ in snapshot.slices if _of(slice_, row.driver, like)]
    old = {slice_.name for slice_ in snapshot.slices if _of(slice_, row.driver, row.node)}
    if not copies:
        return None
    what_if = analysis.what_if.publishing(copies, old).also_on([node])
    return what_if.proof([node])


def _of(slice_: ResourceSlice, driver: str, node: str) -> bool:
    return slice_.driver == driver and slice_.scope.node_name == node


def _copied(slice_: ResourceSlice, node: str) -> ResourceSlice:
    """A slice as the same driver would publish it for another node."""
    exact = slice_.exact()
    return replace(exact, name=f"{slice_.name}-on-{node}", pool=PoolID(slice_.driver, node), scope=NodeScope(node))


def _finding(
    rows: Sequence[NodeDriver],
    proof: Proof | None,
    silent: Finding | None,
    analysis: Analysis,
    *,
    missing: bool = False,
) -> Finding:
    from kubectl_dra.explain.driver_repair import labelling, wanted_again
    from kubectl_dra.explain.driver_words import next_look, why
    from kubectl_dra.explain.node_driver import odd

    first = rows[0]
    where = say("on node {node}", node=ObjectName("Node", first.node)) if first.node else "runs nowhere"
    more = say(" (and on {count:node} more)", count=len(rows) - 1) if rows[1:] else ""
    text = "driver {driver} {where}: {why}{more}"
    how, place = _how(first, analysis, missing=missing), where if first.node else ""
    change = say("Repair driver {driver} {place}{how}", driver=first.driver, place=place, how=how)
    if first.pod is None and first.left_out is not None:
        how = wanted_again(first, first.left_out)
        change = say("Let driver {driver} run {place}: {how}.", driver=first.driver, place=where, how=how)
    if first.state in _COMING:
        runs = first.since and first.pod
        since = say(" (its pod has been running since {since})", since=first.since) if runs else ""
        wait = "Wait: a driver publishes its devices when it has started{since}, and its log says what keeps it."
        change = say(wait, since=since)
    if first.state is DriverState.NODE_DOWN:
        change = say("Bring node {node} back; its driver publishes nothing meanwhile.", node=first.node)
    return Finding(
        UNHEALTHY,
        say(text, driver=first.driver, where=where, why=why(first), more=more),
        (*_facts(first), *odd(analysis.snapshot, [first]), *(silent.evidence if silent is not None else ())),
        Remedy(change, proof, repairs=True, commands=labelling(first)),
        claim=silent.claim if silent is not None else "",
        request=silent.request if silent is not None else "",
        next=next_look(first),
    )


def _how(row: NodeDriver, analysis: Analysis, *, missing: bool) -> Words:
    """What to do, as the end of a sentence and more."""
    from kubectl_dra.data.drivers import catalogue
    from kubectl_dra.data.messages import understood

    said = [row.pod.last.message if row.pod and row.pod.last else "", row.pod.waiting[1] if row.pod else ""]
    said.append(row.daemon.failure if row.daemon else "")
    known = next((meaning for text in said if text and (meaning := understood(text, [row.driver])) is not None), None)
    if known is not None:
        return say(". {means} {do}", means=known.means, do=known.do)
    if (defect := _defect(row, analysis)) is not None:
        return defect
    waits = next((look.waits for look in catalogue().looks if look.driver == row.driver), "")
    if row.pod is not None and row.pod.init and waits:
        return say(". {waits}.", waits=waits)
    if row.state is DriverState.SILENT and not row.usual and (writes := _outdated(row, analysis)):
        lead = ": neither its class nor its slices are there, and its release" if missing else ": its release"
        return say("{lead} {writes}", lead=lead, writes=writes)
    if row.state is DriverState.SILENT and not row.usual:
        version = say(
            "it finds no devices, or it is made for a version of resource.k8s.io that Kubernetes {release} does not "
            "serve (drivers made before 1.34 use v1beta1; from 1.34 on clusters serve only v1 by default)",
            release=str(analysis.scheduler.release),
        )
        if missing:
            return say(": neither its class nor its slices are there, so {version}. Upgrade it.", version=version)
        return say(": its log says why it publishes nothing; mostly {version}.", version=version)
    if row.state is DriverState.SILENT and not row.slices and row.pod is not None:
        return (
            ": its log says why. If somebody deleted its ResourceSlices, restart its pod: drivers built with libraries "
            "before 0.37 do not write them again (kubernetes/kubernetes#140063)."
        )
    if row.daemon is not None and row.daemon.labels:
        return ": give the nodes with its hardware the label, or change its node selector."
    if row.daemon is not None and row.daemon.failure and row.pod is None:
        return say(": remove what keeps its {kind} from making the pod.", kind=row.daemon.kind)
    return ": its log says why."


def _outdated(row: NodeDriver, analysis: Analysis) -> Words:
    """The release of a driver, and that it writes a version of the API that this Kubernetes does not serve.

    Empty if it does.
    """
    from kubectl_dra.data.drivers import catalogue

    release, pod, driver = analysis.scheduler.release, row.pod, catalogue().driver(row.driver)
    if pod is None or driver is None or not pod.api_version or _served(pod.api_version, release):
        return ""
    later = next((first for name, first in driver.writes.items() if _served(name, release)), "")
    text = "{version} writes {api}, which Kubernetes {release} does not serve by default. {upgrade}"
    upgrade = say("Upgrade it to {first} or later.", first=later) if later else "Upgrade it."
    api = f"{GROUP}/{pod.api_version}"
    return say(text, version=pod.version, api=api, release=str(release), upgrade=upgrade)


def _served(version: str, release: Release) -> bool:
    known = lifecycle(version, "ResourceSlice")
    return known is not None and known.served_by_default(release)


def _defect(row: NodeDriver, analysis: Analysis) -> Words | None:
    """A known defect of the driver's release that leaves it in this state, as the end of a sentence and more."""
    from kubectl_dra.data.drivers import catalogue
    from kubectl_dra.data.messages import issue_url

    driver, node = catalogue().driver(row.driver), analysis.snapshot.nodes.get(row.node)
    for defect in driver.defects if driver is not None else ():
        here = not defect.label or (node is not None and defect.label in node.labels)
        version = row.pod.version if row.pod is not None else ""
        same = defect.state == row.state and defect.empty == bool(row.slices)
        if same and here and defect.affects(version):
            known = known_defect(issue_url(defect.known), defect.fixed)
            return say(": its log says whether it is {defect}: {means}.", defect=known, means=defect.means)
    return None


def _facts(row: NodeDriver) -> Iterator[Evidence]:
    from kubectl_dra.explain.driver_words import last_line, pod_named

    pod = row.pod
    if pod is not None:
        own = Subject("Pod", pod_named(pod))
        reason = pod.waiting[0] or ("ready" if pod.ready else "not ready")
        text = "{reason}, {restarts:restart}" if pod.restarts else "{reason}"
        value = say(text, reason=reason, restarts=pod.restarts)
        yield Evidence(own, say("container {name}", name=pod.container), value)
        if pod.last is not None and (words := last_line(pod.last.message)):
            yield Evidence(own, say("last log lines, at {at}", at=pod.last.at), words)
    state = say("{state}, {devices:device}", state=row.state, devices=row.devices)
    yield Evidence(Subject("driver", row.driver), "state", state)
    if row.usual:
        likes, usual = (
            say("nodes {likes:some 2}", likes=nodes_named(row.likes)),
            say("{usual:device} each", usual=row.usual),
        )
        yield Evidence(likes, "are alike and have", usual)
    if row.daemon is not None and row.daemon.failure:
        name = ObjectName(row.daemon.kind, row.daemon.name, row.daemon.namespace)
        yield Evidence(Subject(f"Event on {row.daemon.kind}", name), "last failure", row.daemon.failure)


UNHEALTHY: Final = CauseKind(code="driver-unhealthy", family=Family.POOLS, look=Look.DRIVERS)
