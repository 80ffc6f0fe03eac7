"""The state of a ComputeDomain as text: the node at fault first, then every node with its pods and its daemon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubectl_dra.api.meta import ObjectMeta
from kubectl_dra.command import CommandLine, kubectl
from kubectl_dra.explain.causes.pod_group import lack, step
from kubectl_dra.neighbours.operators import DomainNode, DomainState, MissingLink
from kubectl_dra.report.blocks import Answer, Block, Items, Section, TableBlock, Tone, noted, prose, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import key_json, object_json
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import command_json
from kubectl_dra.report.table import EMPTY
from kubectl_dra.text import amount, some

_ROWS: Final = 6
"""Nodes of which there is a row, those that lack something first."""
_STEPS: Final = {
    MissingLink.NONE: "ready",
    MissingLink.LABEL: "no label",
    MissingLink.OTHER_DOMAIN: "other domain's label",
    MissingLink.DAEMON: "no daemon",
    MissingLink.DAEMON_RUNS: "daemon does not run",
    MissingLink.DAEMON_READY: "daemon not ready",
    MissingLink.UNSEEN: "not read",
}


def exit_code(state: DomainState) -> int:
    """0 ready, or nobody uses it yet; 1 a link is missing; 3 undetermined."""
    if state.template is False:
        return 1
    if any(node.missing is not MissingLink.UNSEEN for node in state.lacking):
        return 1
    return 3 if state.lacking or (state.unread and not state.ready) else 0


def write_compute_domain(state: DomainState, invocation: Invocation, color: str = "auto") -> None:
    """Write the answer on some fifteen lines."""
    out = Painter(color=color)
    write_blocks(out, blocks_of(state, invocation))


def blocks_of(state: DomainState, invocation: Invocation) -> Iterator[Block]:
    """The answer, the nodes, what to do, what to look at."""
    yield _answer(state)
    lacking = state.lacking
    nodes = [*lacking, *(node for node in state.nodes if node not in lacking)]
    if nodes:
        rows = [("NODE", "STATE", "PODS", "DAEMON", "CLIQUE"), *map(_row, nodes[:_ROWS])]
        marks = [(_STEPS[node.missing], "" if node.missing is MissingLink.NONE else "red") for node in nodes[:_ROWS]]
        more = len(nodes) - len(rows) + 1
        table = TableBlock(rows, ("CLIQUE", "DAEMON", "PODS"), False, "STATE", marks, more, "see them with kubectl")
        yield Section("Nodes", (table,))
    if lacking:
        yield Section("Fix", (Items(((prose(step(lacking[0]), hang=0),),)),))
    if notes := [*_notes(state)]:
        yield noted(notes)
    if following := _next(state):
        yield shell((following,), invocation.where, "Next")


def _answer(state: DomainState) -> Answer:
    meta, spec = state.domain.metadata, state.domain.spec
    who = f"ComputeDomain {meta.key}"
    said = state.domain.status.status or "NotReady"
    if state.template is False:
        name = spec.channel.resource_claim_template.name
        reason = f"there is no ResourceClaimTemplate {name}, which the driver's controller makes: it does not run"
        return Answer(f"{who} is {said}", reason, Tone.BAD)
    if state.lacking:
        first, *others = state.lacking
        more = f" (and {amount(len(others), 'more node')})" if others else ""
        return Answer(f"{who} is {said}", f"{written(lack(first, meta.uid))}{more}", Tone.BAD)
    if state.ready:
        return Answer(f"{who} is Ready on {amount(len(state.nodes), 'node')}", "", Tone.GOOD)
    if state.unread:
        return Answer(f"{who} is {said}", f"undetermined: {some(state.unread)}s were not read", Tone.WARNING)
    if not state.used and not state.nodes:
        name = spec.channel.resource_claim_template.name
        reason = f"that is normal, because no pod uses its template {name} yet: its daemons start with the first pod"
        return Answer(f"{who} is {said}", reason, Tone.PLAIN)
    if state.waiting and not state.nodes:
        reason = f"{some([f'pod {pod}' for pod in state.waiting], 2)} of its workload has no node yet"
        return Answer(f"{who} is {said}", f"{reason}, and daemons come after the pods", Tone.WARNING)
    if spec.num_nodes > len(state.nodes):
        reason = f"it wants {amount(spec.num_nodes, 'node')} (spec.numNodes), and {len(state.nodes)} have joined"
        return Answer(f"{who} is {said}", reason, Tone.WARNING)
    return Answer(
        f"{who} is {said}", "every daemon reports itself ready: its controller has not said so yet", Tone.PLAIN
    )


def _row(node: DomainNode) -> tuple[str, ...]:
    daemon = node.daemon.metadata.name if node.daemon is not None else EMPTY
    clique = EMPTY if node.clique is None else node.clique.rpartition(".")[2] or "none (no NVLink fabric)"
    return node.name, _STEPS[node.missing], some(node.pods, 2) or EMPTY, daemon, clique


def _notes(state: DomainState) -> Iterator[str]:
    cliques = {node.clique for node in state.nodes if node.clique}
    if len(cliques) > 1:
        yield f"its nodes are in {len(cliques)} NVLink partitions (cliques): GPUs share memory within each only"
    if any(node.clique == "" for node in state.nodes):
        yield "a node without a clique has no NVLink fabric: its daemon has no peers"
    if state.waiting and state.nodes:
        have = "has" if len(state.waiting) == 1 else "have"
        yield f"{amount(len(state.waiting), 'more pod')} of its workload {have} no node yet"
    wanted = state.domain.spec.num_nodes
    if wanted > len(state.nodes) and state.lacking:
        yield f"spec.numNodes is {wanted}, and {len(state.nodes)} have joined: Ready comes with the last"


def _next(state: DomainState) -> CommandLine | None:
    if state.lacking:
        first = state.lacking[0]
        daemon = first.daemon
        if daemon is None:
            return kubectl("dra", "explain", kind="node", name=first.name)
        meta = daemon.metadata
        if first.missing is MissingLink.DAEMON_READY:
            return kubectl("logs", kind="pod", name=meta.name, namespace=meta.namespace, more=("--tail=50",))
        return kubectl("dra", "explain", kind="pod", name=meta.name, namespace=meta.namespace)
    if state.waiting:
        space = state.domain.metadata.namespace
        return kubectl("dra", "explain", kind="pod", name=state.waiting[0], namespace=space)
    if state.template is False:
        return kubectl("dra", "drivers", others=())
    return None


# As JSON or YAML, in the shape of ``schemas/explain.json``.


def compute_domain_json(state: DomainState, invocation: Invocation) -> dict[str, Any]:
    """The same as data, with all nodes."""
    meta = state.domain.metadata
    lacking = state.lacking
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "ComputeDomainAnswer",
        "subject": object_json(meta.namespace, meta.name, "ComputeDomain"),
        "status": state.domain.status.status,
        "answer": _answer(state).text,
        "fix": {"text": step(lacking[0]) if lacking else ""},
        "template": state.domain.spec.channel.resource_claim_template.name,
        "templateExists": state.template,
        "numNodes": state.domain.spec.num_nodes,
        "items": [_node_json(node, meta) for node in state.nodes],
        "podsWithoutNode": [object_json(meta.namespace, pod) for pod in state.waiting],
        "notes": [*_notes(state)],
        "unreadKinds": list(state.unread),
        **filled(next=command_json(_next(state), where=invocation.where)),
    }


def _node_json(node: DomainNode, meta: ObjectMeta) -> dict[str, Any]:
    return {
        "node": node.name,
        "missingLink": node.missing.name.lower(),
        "why": "" if node.missing is MissingLink.NONE else written(lack(node, meta.uid)),
        "pods": [object_json(meta.namespace, pod) for pod in node.pods],
        **filled(daemon=key_json(node.daemon.metadata.key) if node.daemon is not None else None, reported=node.status),
        **({"clique": node.clique} if node.clique is not None else {}),
    }
