"""The reverse migration of a quota: removes the keys that migrate added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from kubectl_dra.manifests.changes import Delete, Path, changed, value_at
from kubectl_dra.migrate import quotas
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanRefusal, PlanSurroundings, Step
from kubectl_dra.migrate.reverse.pages import NOT_OURS, QUOTA


def plan_quota(raw: Mapping[str, Any], path: Path, settings: MigrationSettings) -> ObjectPlan:
    """Remove the keys that migrate would add again."""
    hard = value_at(raw, path)
    keys = [key for key in hard if str(key).endswith(".deviceclass.resource.k8s.io/devices")] if hard else []
    changes = tuple(Delete((*path, key)) for key in keys)
    if not changes:
        return ObjectPlan()
    before = changed(raw, changes)
    forward = replace(settings, reverse=False, strategy="claims")
    again = quotas.plan(before, PlanSurroundings(), forward)
    after = changed(before, [change for step in again.steps for change in step.changes])
    if after != raw:
        names = ", ".join(str(key) for key in keys)
        way_out = "Take the keys out by hand when no pod of the namespace has claims any more."
        message = f"{names} is not what migrate adds to this quota"
        return ObjectPlan(refusals=(PlanRefusal(NOT_OURS, (*path, keys[0]), message, way_out),))
    reason = f"the quota counts {', '.join(map(str, keys))} no more"
    return ObjectPlan((Step(QUOTA, (*path, keys[0]), reason, changes),))
