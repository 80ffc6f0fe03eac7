"""A funnel as shown in a diagnosis: the stages with what the devices have instead, and every device."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import ALL
from kubectl_dra.explain.diagnosis import DeviceLine, Funnel, Observation, Stage
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.funnel.stages import StageResult, counted, stage_error
from kubectl_dra.explain.phrase import Words


def report(funnel: RequestFunnel, *, with_devices: bool = False) -> Funnel:
    """The funnel of one request, with a line per device only if requested."""
    best_node, best_count = funnel.best_node()
    return Funnel(
        request=funnel.name,
        device_class=funnel.spec.device_class,
        mode=funnel.spec.allocation_mode,
        needed=funnel.spec.count if funnel.spec.allocation_mode != ALL else 0,
        stages=tuple(_stage(funnel, stage) for stage in funnel.stages),
        best_node=best_node,
        best_count=best_count,
        devices=tuple(_devices(funnel)) if with_devices else (),
    )


def _stage(funnel: RequestFunnel, stage: StageResult) -> Stage:
    seen: tuple[Observation, ...] = ()
    error = None
    details: tuple[tuple[Words, int], ...] = ()
    if stage.expression and stage.failed:
        terms = funnel.view.cycle.selectors.terms(stage.program)
        seen = funnel.observed(stage, terms[stage.term]) if terms else ()
        error = stage_error(stage)
    elif stage.failed:
        details = tuple(counted(stage.reasons))
    return Stage(
        name=stage.name,
        label=stage.label,
        passed=stage.passed,
        failed=len(stage.failed),
        expression=stage.expression,
        observations=seen,
        error=error,
        details=details,
        selector=stage.selector,
    )


def _devices(funnel: RequestFunnel) -> Iterator[DeviceLine]:
    for item, position in funnel.failures.each():
        where = item.device.scope if item.slice.per_device_node_selection else item.slice.scope
        yield DeviceLine(
            device=item.id,
            nodes=where.node_name or str(where),
            stage="usable" if position is None else funnel.stages[position].name,
            reason=funnel.failures.reason(item, position),
        )
