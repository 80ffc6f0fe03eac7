"""``explain computedomain/NAME``: its nodes, and the link that is missing between a workload and its daemons."""

from __future__ import annotations

import sys

from msgspec.structs import replace

from kubectl_dra.api.compute_domains import ComputeDomain
from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.reading import read_cluster
from kubectl_dra.cli.explain.target import NotThere, elsewhere
from kubectl_dra.cli.options import ConnectionFlags, cluster_flags
from kubectl_dra.errors import UndeterminedError, UsageError
from kubectl_dra.neighbours.compute_domains import CLIQUE, DOMAIN, domain_state
from kubectl_dra.report.explain_words import Invocation
from kubectl_dra.text import did_you_mean, nearest


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
    snapshot, namespace = read_cluster(replace(flags, target=(), all_namespaces=True), connection)
    if not flags.snapshots:
        from kubectl_dra.cli.live import with_neighbours
        from kubectl_dra.cluster.pointed import Pointer

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
        from kubectl_dra.report.table import write

        write(compute_domain_json(state, invocation), flags.output.value, sys.stdout, exit_code(state))
        return exit_code(state)
    write_compute_domain(state, invocation, flags.color.value)
    return exit_code(state)
