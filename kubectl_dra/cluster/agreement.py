"""Whether selectors give the same verdicts on the devices of two snapshots: checks what anonymizing replaced."""

from __future__ import annotations

from collections.abc import Iterator

from kubectl_dra.api.claims import Request
from kubectl_dra.api.releases import UNTOLD
from kubectl_dra.cel import CompileError, Environment, compile_expression
from kubectl_dra.cluster.snapshot import Snapshot


def disagreements(before: Snapshot, after: Snapshot) -> list[str]:
    """A sentence for each selector of ``before`` whose counterpart in ``after`` gives another verdict.

    Both hold the same objects in the same order. All errors count as equal.
    """
    from kubectl_dra.cel.columns import DeviceTable

    release = before.release or UNTOLD
    environment = Environment.for_release(release, stored=True)
    tables = [
        DeviceTable([device for entry in snapshot.slices for device in entry.devices]) for snapshot in (before, after)
    ]
    judged: set[tuple[str, str]] = set()
    out: list[str] = []
    for (where, expression), (_, other) in zip(_selectors(before), _selectors(after), strict=True):
        if expression == other and before.slices is after.slices:
            continue
        if (expression, other) in judged:
            continue
        judged.add((expression, other))
        verdicts: list[list[object]] = []
        for text, table in zip((expression, other), tables, strict=True):
            try:
                program = compile_expression(environment, text)
            except CompileError:
                verdicts.append([])
                continue
            verdicts.append([v if isinstance(v, bool) else None for v in program.evaluate_devices(table)])
        if len(verdicts[0]) != len(verdicts[1]):
            out.append(f"a selector of {where} does not compile in one of both")
        elif wrong := sum(one != two for one, two in zip(*verdicts, strict=True)):
            out.append(f"a selector of {where} gives another answer on {wrong:,} devices than before")
    return out


def _selectors(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for name, device_class in snapshot.classes.items():
        for expression in device_class.selectors:
            if expression is not None:
                yield f"DeviceClass {name}", expression
    for claim in snapshot.claims.values():
        yield from _of(f"ResourceClaim {claim.key}", claim.requests)
    for (namespace, name), template in snapshot.templates.items():
        yield from _of(f"ResourceClaimTemplate {namespace}/{name}", template.claim(name, namespace).requests)


def _of(where: str, requests: tuple[Request, ...]) -> Iterator[tuple[str, str]]:
    for request in requests:
        for alternative in request.alternatives():
            for expression in alternative.selectors:
                if expression is not None:
                    yield where, expression
