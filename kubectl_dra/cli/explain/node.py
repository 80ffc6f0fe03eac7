"""``explain node/NAME``: a node with its drivers, and the pods that use devices there."""

from __future__ import annotations

import sys

from msgspec.structs import replace

from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.questions import read_cluster, settings_of
from kubectl_dra.cli.explain.refused_flags import RELEASE, refuse_flags
from kubectl_dra.cli.explain.target import NotThere
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags
from kubectl_dra.errors import UndeterminedError, UsageError
from kubectl_dra.explain.node_state import known, node_state
from kubectl_dra.report.explain_words import Invocation
from kubectl_dra.text import nearest


def run_node(name: str, asked: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print what is the case on a node; return the exit code.

    Raises:
        UsageError: what does not go with it.
        NotThere: no such node.
    """
    refuse_flags(asked, f"a pod or claim; explain node/{name} is about all pods of the node", RELEASE)
    if asked.output is ExplainOutput.html:
        raise UsageError("explain node/NAME prints text, json or yaml, not html")
    snapshot, _ = read_cluster(replace(asked, target=(), all_namespaces=True), connection)
    if not known(name, snapshot):
        if snapshot.is_gap("Node"):
            raise UndeterminedError(f"nodes could not be read, so nobody knows whether there is a node {name}")
        near = nearest(name, snapshot.nodes) or sorted(snapshot.nodes)[:5]
        raise NotThere(f"Node {name}", f"there is no node {name}; there are: {', '.join(near) or 'none'}")
    state = node_state(name, snapshot, settings_of(asked, snapshot))
    where = cluster_flags(asked, connection)
    invocation = Invocation(("kubectl", "dra", "explain", f"node/{name}", *where.flags), where)
    if asked.output is ExplainOutput.text:
        from kubectl_dra.report.node_state import write_node_state

        write_node_state(state, invocation, asked.color.value, full=asked.whole_page)
    else:
        from kubectl_dra.report.node_state import node_state_json
        from kubectl_dra.report.table import write

        write(node_state_json(state, invocation), asked.output.value, sys.stdout)
    return state.exit_code
