"""``explain`` of what is no pod and no claim: node, class, device, driver, ComputeDomain, VirtualMachine."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kubectl_dra.api.neighbour_kinds import ComputeDomain
from kubectl_dra.cli.command_line import cluster_flags
from kubectl_dra.cli.explain import RELEASE, ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.reading import asked_settings, read_cluster, with_daemon_sets
from kubectl_dra.cli.explain.target import NotThere, TypedTarget, elsewhere
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.errors import UndeterminedError, UsageError
from kubectl_dra.exit_codes import EXIT_NO
from kubectl_dra.neighbours.no_pod import INSTANCE, unmade
from kubectl_dra.neighbours.operators import CLIQUE, DOMAIN, domain_state
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.text import did_you_mean, did_you_mean_or_known, nearest


def run_by_itself(targets: Sequence[TypedTarget], flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print what is the case with a node, or with what ``devices`` and ``drivers`` list; return the exit code.

    Raises:
        UsageError: it stands beside something else, or flags ask about a pod or claim.
        NotThere: no such node.
    """
    if len(targets) > 1:
        raise UsageError("a node, class, device, driver or ComputeDomain is explained by itself: name one at a time")
    (target,) = targets
    if target.kind == "node":
        return _run_node(target.name, flags, connection)
    if target.kind == "computedomain":
        return run_compute_domain(target.name, flags, connection)
    from kubectl_dra.cli.explain.listed_object import run_listed

    return run_listed(target, flags, connection)


def _run_node(name: str, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    from kubectl_dra.explain.node_state import known, node_state

    flags.refuse(f"a pod or claim; explain node/{name} is about all pods of the node", RELEASE)
    if flags.output is ExplainOutput.html:
        raise UsageError("explain node/NAME prints text, json or yaml, not html")
    snapshot, _ = read_cluster(flags, connection, everything=True)
    if not known(name, snapshot):
        if snapshot.is_gap("Node"):
            (gap,) = snapshot.unread(("Node",))
            raise UndeterminedError(f"{gap}, so whether there is a node {name} is unknown{gap.help}")
        raise NotThere(f"Node {name}", f"there is no node {name}; {did_you_mean_or_known(name, snapshot.nodes)}")
    settings = asked_settings(flags, snapshot)
    state = node_state(name, snapshot, settings)
    if not flags.snapshots and any(row.state.broken and row.pod is None for row in state.drivers):
        # Its DaemonSet may say why it has no pod.
        state = node_state(name, with_daemon_sets(snapshot, connection), settings)
    where = cluster_flags(flags, connection)
    invocation = Invocation(("kubectl", "dra", "explain", f"node/{name}", *where.flags), where)
    if flags.output is ExplainOutput.text:
        from kubectl_dra.report.node_state import write_node_state

        write_node_state(state, invocation, flags.color.value, full=flags.whole_page)
    else:
        from kubectl_dra.report.node_state import node_state_json
        from kubectl_dra.report.structured import write

        write(node_state_json(state, invocation), flags.output.value, sys.stdout, state.exit_code)
    return state.exit_code


def run_compute_domain(name: str, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print the state of a ComputeDomain; return the exit code.

    Raises:
        UsageError: what does not go with it.
        NotThere: no such domain.
        UndeterminedError: domains were not read.
    """
    flags.refuse("a pod or claim; a ComputeDomain is explained with all of its nodes", ())
    if flags.output is ExplainOutput.html:
        raise UsageError("explain computedomain/NAME prints text, json or yaml, not html")
    snapshot, namespace = read_cluster(flags, connection, everything=True)
    if not flags.snapshots:
        from kubectl_dra.cli.live import with_neighbours
        from kubectl_dra.cluster.pointed_objects import Pointer

        pointed = [Pointer(DOMAIN, namespace), Pointer(CLIQUE)]
        snapshot = with_neighbours(snapshot, lambda _: pointed, connection, flags.namespace)
    known: dict[tuple[str, str], ComputeDomain] = snapshot.others.get(DOMAIN, {})  # type: ignore[assignment]
    spaces = sorted(space for space, other in known if other == name)
    if flags.snapshots and not flags.namespace and len(spaces) == 1:
        namespace = spaces[0]
    domain = known.get((namespace, name))
    if domain is None:
        gap = snapshot.missing(DOMAIN, namespace)
        if gap is not None:
            raise UndeterminedError(f"{gap}, so whether there is a ComputeDomain {name} is unknown{gap.help}")
        near = nearest(name, [other for space, other in known if space == namespace])
        hint = elsewhere(known, name) or (did_you_mean(near) if near else "there is none of that name")
        raise NotThere(f"ComputeDomain {name}", f"no ComputeDomain {name} in namespace {namespace}; {hint}")
    from kubectl_dra.report.compute_domain import compute_domain_json, exit_code, write_compute_domain

    where = cluster_flags(flags, connection)
    target = f"computedomain/{name}"
    invocation = Invocation(("kubectl", "dra", "explain", target, "-n", namespace, *where.flags), where)
    state = domain_state(domain, snapshot)
    if flags.output is not ExplainOutput.text:
        from kubectl_dra.report.structured import write

        write(compute_domain_json(state, invocation), flags.output.value, sys.stdout, exit_code(state))
        return exit_code(state)
    write_compute_domain(state, invocation, flags.color.value)
    return exit_code(state)


def run_without_pod(name: str, absent: NotThere, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print why there is no pod; return the exit code.

    Raises:
        NotThere: nothing says why, or there is no such virtual machine.
        UndeterminedError: its instance could not be read.
    """
    snapshot, namespace = read_cluster(flags, connection)
    if not flags.snapshots:
        from kubectl_dra.cli.live import with_neighbours
        from kubectl_dra.cluster.pointed_objects import Pointer

        pointed = [Pointer(INSTANCE, namespace, name)]
        snapshot = with_neighbours(snapshot, lambda _: pointed, connection, flags.namespace)
    everywhere = bool(flags.snapshots) and not flags.namespace
    launchers = [launcher for launcher in unmade(snapshot, "" if everywhere else namespace) if launcher.name == name]
    for gap in snapshot.unread((INSTANCE,), namespace) if not launchers else ():
        if gap.reason != ABSENT:
            raise UndeterminedError(f"{gap}, so why virtual machine {name} has no pod is unknown{gap.help}")
    if len(launchers) != 1:
        raise absent
    if flags.output is ExplainOutput.html:
        raise UsageError("explain of a virtual machine without a pod prints text, json or yaml, not html")
    from kubectl_dra.report.structured import write
    from kubectl_dra.report.virtual_machine import unmade_json, write_unmade

    where = cluster_flags(flags, connection)
    if flags.output is ExplainOutput.text:
        write_unmade(launchers[0], where, flags.color.value)
    else:
        write(unmade_json(launchers[0], where), flags.output.value, sys.stdout, EXIT_NO)
    return EXIT_NO
