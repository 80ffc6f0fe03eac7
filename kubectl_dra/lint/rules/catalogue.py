"""The rules beyond the API server's own. A family is added by one line."""

from __future__ import annotations

from typing import Final

from kubectl_dra.lint.rule import Rule
from kubectl_dra.lint.rules import (
    cluster,
    comparisons,
    configs,
    guards,
    known,
    lifecycle,
    names,
    offers,
    plugins,
    quantities,
    quotas,
    requests,
    taints,
    wiring,
)

RULES: Final[tuple[type[Rule], ...]] = (
    *guards.RULES,
    *comparisons.RULES,
    *known.RULES,
    *offers.RULES,
    *requests.RULES,
    *quantities.RULES,
    *wiring.RULES,
    *names.RULES,
    *lifecycle.RULES,
    *configs.RULES,
    *plugins.RULES,
    *quotas.RULES,
    *taints.RULES,
    *cluster.RULES,
)
