"""The matching devices have taints that the request does not tolerate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kubectl_dra.api.claims import ALL
from kubectl_dra.api.taints import DeviceTaint, blocking_taint
from kubectl_dra.command import deleting
from kubectl_dra.explain.cause_kinds import CauseKind, Family, Look
from kubectl_dra.explain.causes.devices_held import ALL_INCOMPLETE
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked, in_all
from kubectl_dra.explain.funnel.shown import StageName
from kubectl_dra.explain.funnel.stages import describe_taint
from kubectl_dra.explain.phrase import Phrase, Subject, Words, say
from kubectl_dra.explain.remedies.change import Tolerate

TAINTED = CauseKind(code="devices-tainted", family=Family.DEVICES, fixed_at=Look.TAINTED_DEVICES)
TOLERATION = CauseKind(code="toleration-does-not-match", family=Family.DEVICES, fixed_at=Look.TAINTED_DEVICES)


def _tainted(blocked: Blocked) -> Iterator[Finding]:
    kind = ALL_INCOMPLETE if blocked.spec.allocation_mode == ALL else TAINTED
    lost = [(item, taint) for item in blocked.lost if (taint := _blocking(blocked, item.device.taints))]
    by_taint: dict[str, list[DeviceTaint]] = {}
    for _, taint in lost:
        by_taint.setdefault(str(taint), []).append(taint)
    missed = _missed(blocked)
    if missed and kind is TAINTED:
        kind = TOLERATION
    count = len(blocked.lost)
    text = "{count:device} that {count:matches|match} {where} {count:is|are} tainted: {listed}{rest}{other}"
    if len(by_taint) == 1:
        text = "{count:device} that {count:matches|match} {where} {count:has|have} taint {taint}{rest}{other}"
    summary = say(
        text,
        count=count,
        where=blocked.where,
        taint=next(iter(by_taint)),
        listed=[
            say("{count} with {taint}", taint=text, count=len(taints))
            for text, taints in sorted(by_taint.items(), key=lambda item: -len(item[1]))
        ],
        rest=say("; {left} untainted, {needed} needed", left=blocked.left, needed=blocked.located.needed)
        if blocked.left
        else "",
        other=_of_other_keys(blocked, missed),
    )
    evidence = [
        Evidence(
            Subject("device", item.id),
            "taint",
            say("{taint}{since}", taint=describe_taint(taint, blocked.spec), since=_since(item.exact.taints)),
        )
        for item, taint in lost[:MAX_EVIDENCE]
    ]
    remedy = _remedy(blocked, kind, tuple(taints[0] for taints in by_taint.values()), missed)
    yield Finding(kind, summary, (*evidence, *in_all(count, "devices tainted")), remedy)


def _remedy(blocked: Blocked, kind: CauseKind, taints: tuple[DeviceTaint, ...], missed: tuple[Phrase, ...]) -> Remedy:
    from kubectl_dra.explain.ending_taints import MAX_COMMANDS, ending_taints, rules_named

    blocking = [(item, _blocking(blocked, item.device.taints)) for item in blocked.lost]
    rules = tuple(sorted({taint.rule for _, taint in blocking if taint is not None and taint.rule}))
    deleted = tuple(deleting("devicetaintrule", rule) for rule in rules[:MAX_COMMANDS])
    if rules and blocked.located.place.extended:
        return ending_taints(rules)
    tolerate = Tolerate(blocked.located.place, taints)
    offers = (tolerate, *(Tolerate(blocked.located.place, (taint,)) for taint in taints)) if rules else (tolerate,)
    if kind is TOLERATION:
        text = "Correct the toleration in a new claim: {missed}."
        if rules:
            text += " Or delete {rules} once the maintenance is over."
        proof = blocked.what_if.proof_with(tolerate)
        return Remedy(say(text, missed=missed, rules=rules_named(rules)), proof, offers=(tolerate,), commands=deleted)
    if rules:
        text = "Delete {rules} once the maintenance is over, or let the request tolerate the taint."
        proof = blocked.what_if.proof_with(tolerate)
        return Remedy(say(text, rules=rules_named(rules)), proof, offers=offers, commands=deleted)
    return ending_taints((), {(item.id.driver, taint.key) for item, taint in blocking if taint is not None})


def _of_other_keys(blocked: Blocked, missed: Sequence[Phrase]) -> Words:
    """Words for the keys that the request tolerates, none of which is the taint's; empty if there are none."""
    keys = tuple(dict.fromkeys(toleration.key for toleration in blocked.spec.tolerations if toleration.key))
    if not keys or missed:
        return ""
    return say(", and the request tolerates only {keys:some}", keys=keys)


def _blocking(blocked: Blocked, taints: Collection[DeviceTaint]) -> DeviceTaint | None:
    return blocking_taint(tuple(taints), blocked.spec.tolerations)


def _missed(blocked: Blocked) -> tuple[Phrase, ...]:
    """Mismatches of tolerations with the taints of all lost devices; empty if none is near one of the taints."""
    texts: dict[Phrase, None] = {}
    for item in blocked.lost:
        taint = _blocking(blocked, item.device.taints)
        near = [
            toleration
            for toleration in blocked.spec.tolerations
            if taint is not None and toleration.key in ("", taint.key)
        ]
        if taint is None or not near:
            return ()
        part = near[0].mismatch(taint)
        wanted = {"effect": taint.effect, "value": taint.value or '""'}.get(part or "", "Exists or Equal")
        texts[say("{part} has to be {wanted} for key {key}", part=part, wanted=wanted, key=taint.key)] = None
    return tuple(texts)


def _since(taints: Collection[DeviceTaint]) -> Words:
    times = sorted(taint.time_added for taint in taints if taint.time_added)
    return say(", since {time}", time=times[0]) if times else ""


FINDERS = (Finder(When.STAGE, _tainted, of=StageName.TAINT),)
