"""The devices in the picture of ``explain -o html``."""

from __future__ import annotations

from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.errors import InputError
from kubectl_dra.explain.devices.inventory import Inventory, Wanted, take_inventory
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.scene.assumptions import rules_notes
from kubectl_dra.explain.scene.equivalent_nodes import complete
from kubectl_dra.explain.scene.prepare import Settings, cycle_of


def fleet(question: Question | None, snapshot: Snapshot, settings: Settings) -> Inventory | None:
    """The devices of a cluster, of one node with ``--node``; None if they were not read.

    They are exact in what classes read, and the ``question`` if it is about one pod or claim.
    """
    shown = complete(question, snapshot, settings).for_lists()
    wanted = Wanted(nodes=(settings.node,) if settings.node else ())
    try:
        return take_inventory(shown, cycle_of(shown, settings), wanted, rules_notes(shown, settings))
    except InputError:
        return None
