"""The devices of each request of a claim as blocks: how many are left after each stage, and where the others went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from kubectl_dra.explain.diagnosis import (
    ClaimReport,
)
from kubectl_dra.explain.funnel.shown import DeviceLine, Funnel, Stage, StageError, StageName
from kubectl_dra.explain.funnel.stages import SelectorFalse
from kubectl_dra.explain.phrase import Words
from kubectl_dra.report.blocks import (
    IN_JSON,
    Block,
    Checks,
    FunnelStep,
    Items,
    Marked,
    Para,
    Section,
    Steps,
    Tone,
    WordMark,
    prose,
)
from kubectl_dra.report.explain_words import claim_named, observation
from kubectl_dra.report.phrases import written

MAX_REASONS: Final = 4


MAX_DEVICES: Final = 200


MAX_TERMS: Final = 6


_FALSE: Final = {
    StageName.CLASS_SELECTOR: "a selector of the class is false",
    StageName.REQUEST_SELECTOR: "a selector of the request is false",
}


def claim_section(claim: ClaimReport) -> Section:
    origin = f", from template {claim.template}" if claim.template else ""
    name = claim_named(claim.claim) if claim.claim else f'claim of entry "{claim.entry}"'
    blocks: list[Block] = [prose(f"{result.request}: {result.device}") for result in claim.devices]
    if claim.nodes:
        blocks.append(prose(f"usable on: {claim.nodes}"))
    for funnel in claim.funnels:
        blocks += _funnel(funnel, fold=len(claim.funnels) > 1)
    return Section(
        f"{name[:1].upper()}{name[1:]}", tuple(blocks), f" ({written(claim.state)}{origin})", beside=True, name="claim"
    )


def _funnel(funnel: Funnel, *, fold: bool) -> Iterator[Steps | Checks]:
    wanted = "all devices" if funnel.mode == "All" else f"{funnel.needed:,}"
    title = f": {wanted} of class {funnel.device_class}; devices left after each step"
    best = f"most on one node: {funnel.best_count:,} on {funnel.best_node}" if funnel.best_node else ""
    # What follows a stage that leaves nothing has nothing to test.
    end = next((at for at, stage in enumerate(funnel.stages, 1) if not stage.passed), None)
    steps = tuple(map(_step, _folded(funnel.stages[:end])))
    yield Steps(f'request "{funnel.request}"', title, steps, best, fold)
    if funnel.devices:
        more = len(funnel.devices) - MAX_DEVICES
        rest = f"… {more:,} more devices{IN_JSON}" if more > 0 else ""
        yield Checks(tuple(map(_check, funnel.devices[:MAX_DEVICES])), rest)


def _check(line: DeviceLine) -> tuple[bool, str, str]:
    false = line.stage in _FALSE and isinstance(line.reason, SelectorFalse)
    why = f"{line.stage}: {written(line.reason)}"
    if false:
        has = ", ".join(
            f"{observed.name} is {observed.values[0][0] or 'absent'}"
            for observed in line.observations
            if observed.values
        )
        why = (written(line.label) if line.label else _FALSE[line.stage]) + (f": {has}" if has else "")
    return (line.stage is StageName.USABLE, f"{line.device}  ({line.where})", why if line.reason else "")


def _folded(stages: Sequence[Stage]) -> Iterator[Stage]:
    """Selector terms of a class that lose no device become one line, and so do many of one selector in a row."""
    kept: list[Stage] = []
    for stage in stages:
        last = kept[-1] if kept else None
        foldable = last is not None and not last.failed and not stage.failed and last.name == stage.name
        if last is not None and foldable and stage.name is StageName.CLASS_SELECTOR:
            kept[-1] = replace(last, label=last.selector, expression="")
        else:
            kept.append(stage)

    def selector(stage: Stage) -> tuple[Words, bool]:
        return stage.selector, bool(stage.expression) and not stage.failed

    for (label, lossless), group in groupby(kept, key=selector):
        run = list(group)
        if lossless and len(run) > MAX_TERMS:
            yield replace(run[-1], label=f"{written(label)}: {len(run):,} terms that refuse nothing", expression="")
        else:
            yield from run


def _step(stage: Stage) -> FunnelStep:
    """A stage with its reasons, an error, and what the refused devices have."""
    reasons = tuple((prose(f"{count:,} × {written(reason)}", Tone.QUIET),) for reason, count in stage.details)
    rest = f"{sum(count for _, count in stage.details[MAX_REASONS:]):,} × others"
    seen: list[Para] = [_error(stage.error)] if stage.error is not None else []
    seen += [prose(observation(observed), Tone.QUIET) for observed in stage.observations]
    lists = Items(reasons, "", MAX_REASONS, rest), Items(tuple((para,) for para in seen), "")
    remarks = tuple(items for items in lists if items.items)
    return FunnelStep(stage.passed, stage.failed, written(stage.label), stage.expression, remarks)


def _error(error: StageError) -> Para:
    place = f" at column {error.position.column}" if error.position else ""
    line = f" of line {error.position.line}" if error.position and error.position.line > 1 else ""
    text = f": {error.message}{place}{line}, for instance on {error.device}"
    return Para((Marked(f"error on {error.count:,}", WordMark.LABEL), text), Tone.BAD, 2)
