"""``explain vm/NAME`` where the virtual machine has no pod: why KubeVirt cannot make it."""

from __future__ import annotations

from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cli.explain.reading import read_cluster
from kubectl_dra.cli.explain.target import NotThere
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cluster.snapshot import ABSENT
from kubectl_dra.errors import UndeterminedError
from kubectl_dra.neighbours.kubevirt import INSTANCE, unmade

EXIT_NO_POD = 1


def run_without_pod(name: str, absent: NotThere, flags: ExplainFlags, connection: ConnectionFlags) -> int:
    """Print why there is no pod; return the exit code.

    Raises:
        NotThere: nothing says why, or there is no such virtual machine.
        UndeterminedError: its instance could not be read.
    """
    snapshot, namespace = read_cluster(flags, connection)
    if not flags.snapshots:
        from kubectl_dra.cli.live import with_neighbours
        from kubectl_dra.cluster.pointed import Pointer

        pointed = [Pointer(INSTANCE, namespace, name)]
        snapshot = with_neighbours(snapshot, lambda _: pointed, connection, flags.namespace)
    everywhere = bool(flags.snapshots) and not flags.namespace
    launchers = [each for each in unmade(snapshot, "" if everywhere else namespace) if each.name == name]
    for gap in snapshot.unread((INSTANCE,), namespace) if not launchers else ():
        if gap.reason != ABSENT:
            raise UndeterminedError(f"{gap}, so why virtual machine {name} has no pod is unknown{gap.help}")
    if len(launchers) != 1 or flags.output is not ExplainOutput.text:
        raise absent
    from kubectl_dra.report.virtual_machine import write_unmade

    write_unmade(launchers[0], flags.color.value)
    return EXIT_NO_POD
