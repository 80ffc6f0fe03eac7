"""TaintToleration: nodes with fewer untolerated PreferNoSchedule taints score higher."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_dra.scheduling.framework import ScorePlugin
from kubectl_dra.scheduling.reasons import PluginName
from kubectl_dra.scheduling.scores.normalize import share_of_best
from kubectl_dra.scheduling.tolerations import COMPARISON, tolerated

_PREFERRED = "PreferNoSchedule"


class TaintTolerationScore(ScorePlugin):
    """The plugin for one pod."""

    name = PluginName.TAINT_TOLERATION

    def scores(self) -> Mapping[str, int]:
        tolerations = [entry for entry in self.pod.spec.tolerations if entry.effect in ("", _PREFERRED)]
        comparing = COMPARISON in self.state.gates
        return share_of_best(
            {
                node.name: sum(
                    taint.effect == _PREFERRED and not tolerated(taint, tolerations, comparing=comparing)
                    for taint in node.node.taints
                )
                for node in self.nodes
            },
            reverse=True,
        )
