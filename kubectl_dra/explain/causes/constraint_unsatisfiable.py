"""A constraint between the devices cannot be met, or they lack its attribute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.constraints import attribute_of, values_of
from kubectl_dra.allocation.errors import AllocationError
from kubectl_dra.api.claims import DeviceConstraint, ResourceClaim
from kubectl_dra.explain.causes.registry import Finder, When
from kubectl_dra.explain.causes.request_refused import plain
from kubectl_dra.explain.diagnosis import CauseKind, Evidence, Family, Finding, Remedy
from kubectl_dra.explain.funnel.blocked import Located
from kubectl_dra.explain.phrase import Joined, ObjectName, Words, say
from kubectl_dra.explain.remedies.change import DropConstraint
from kubectl_dra.explain.remedies.proof import Proof
from kubectl_dra.explain.scene.view import Published
from kubectl_dra.explain.trial import Trial
from kubectl_dra.names import nearest

MAX_ATTRIBUTES = 6
MAX_VALUES = 5
MAX_EVIDENCE = 8
_PCIE_ROOT = "resource.kubernetes.io/pcieRoot"

CONSTRAINT = CauseKind(code="constraint-unsatisfiable", family=Family.DEVICES)
ATTRIBUTE_MISSING = CauseKind(code="constraint-attribute-missing", family=Family.DEVICES)


def _of_error(_: Trial, error: AllocationError, __: str) -> Iterator[Finding]:
    yield plain(CONSTRAINT, error)


def _together(trial: Trial) -> Iterator[Finding]:
    """The first constraint without which the claims fit."""
    for index, claim in enumerate(trial.claims):
        for constraint in claim.constraints:
            proof = trial.world.without_constraint(index, constraint).proof()
            if proof is not None:
                yield _finding(trial, index, claim, constraint, proof)
                return


def _finding(trial: Trial, index: int, claim: ResourceClaim, constraint: DeviceConstraint, proof: Proof) -> Finding:
    name = constraint.match_attribute or constraint.distinct_attribute
    group = [entry for entry in trial.funnels if entry.claim is claim and constraint.covers(*entry.names)]
    evidence: list[Evidence] = []
    for located in group:
        for node, values in _values(trial, located, constraint):
            about = say("{where} on {node}", where=located.where, node=ObjectName("Node", node))
            evidence.append(Evidence(about, name, values))
    covered = say("{requests: else all requests}", requests=tuple(constraint.requests))
    words = {"name": name, "constraint": constraint, "covered": covered}
    change = DropConstraint(index, claim.key, constraint)
    remedy = Remedy(say("Drop or widen the constraint {constraint}.", **words), proof, offers=(change,))
    kind = CONSTRAINT
    text = "no node has free devices for {together} with {same} {name}"
    if name == _PCIE_ROOT and constraint.match_attribute:
        text = "no node has free devices for {together} under one PCIe root"
    same = "the same" if constraint.match_attribute else "different values of"
    requests = tuple(constraint.requests) or tuple(dict.fromkeys(entry.funnel.name for entry in group))
    summary = say(text, **words, same=same, together=Joined(requests, " and "))
    if _lacking(trial, group, constraint):
        kind = ATTRIBUTE_MISSING
        summary = say("too few devices have {name}, which the constraint {constraint} over {covered} reads", **words)
        remedy = _other_attribute(trial, group, constraint) or remedy
        evidence.extend(_instead(group, name))
    return Finding(kind, summary, tuple(evidence[:MAX_EVIDENCE]), remedy, claim=claim.key)


def _value(trial: Trial, located: Located, item: Published, constraint: DeviceConstraint) -> str:
    """The value that the constraint compares, which the request may derive; empty if there is none."""
    name = constraint.match_attribute or constraint.distinct_attribute
    device = item.device
    if located.funnel.spec.derived_attributes:
        from kubectl_dra.allocation.derived_attributes import as_compared

        try:
            device = as_compared(located.funnel.spec, constraint, device, item.id, trial.view.cycle.selectors)
        except AllocationError:
            return ""
    value = attribute_of(device, name)
    if value is None:
        return ""
    return str(value[1]) if value[0] else ", ".join(sorted(str(each) for _, each in values_of(device, name)))


def _lacking(trial: Trial, group: Sequence[Located], constraint: DeviceConstraint) -> bool:
    """Whether on every node some request has too few usable devices with the attribute."""
    return all(
        any(
            sum(1 for item in entry.funnel.usable_on(node.name) if _value(trial, entry, item, constraint))
            < entry.funnel.needed_on(node.name)
            for entry in group
        )
        for node in trial.view.nodes
    )


def _other_attribute(trial: Trial, group: Sequence[Located], constraint: DeviceConstraint) -> Remedy | None:
    """An attribute that usable devices of all the requests have, and with which the claims fit."""
    if not group or not constraint.match_attribute:
        return None
    names = [
        {
            name if "/" in name else f"{item.device.driver}/{name}"
            for item in entry.funnel.usable
            for name in item.device.attributes
        }
        for entry in group
    ]
    old = constraint.match_attribute
    common = sorted(name for name in set.intersection(*names) - {old} if _alike(_identifier(old), name))
    for name in common[:MAX_ATTRIBUTES]:
        other = replace(constraint, match_attribute=name)
        proof = trial.world.with_constraint(group[0].claim_index, constraint, other).proof()
        if proof is not None:
            return Remedy(say("Write matchAttribute: {name}, which these devices have.", name=name), proof)
    return None


def _values(trial: Trial, located: Located, constraint: DeviceConstraint) -> Iterator[tuple[str, Words]]:
    """For each node with usable devices: their values of the constraint's attribute."""
    for node in trial.view.nodes:
        usable = located.funnel.usable_on(node.name)
        if not usable:
            continue
        values = Counter(_value(trial, located, item, constraint) or "absent" for item in usable)
        shown = [say("{value} on {count}", value=value, count=count) for value, count in values.most_common(MAX_VALUES)]
        more = len(values) - MAX_VALUES
        text = "{shown} and {more:,} more values" if more > 0 else "{shown}"
        yield node.name, say(text, shown=shown, more=more)


def _instead(group: Sequence[Located], name: str) -> Iterator[Evidence]:
    """Names similar to the missing attribute, on the devices that lack it."""
    for located in group:
        lacking = [item.device for item in located.funnel.usable if attribute_of(item.device, name) is None]
        names = sorted({other for device in lacking for other in device.attributes if _alike(_identifier(name), other)})
        if names:
            yield Evidence(located.where, "its devices have instead", say("{names:some}", names=names))


def _alike(wanted: str, name: str) -> bool:
    """Whether two attributes seem to mean the same: their identifiers are nearly equal."""
    identifier = _identifier(name)
    return wanted == identifier or bool(nearest(wanted, [identifier]))


def _identifier(name: str) -> str:
    return name.rpartition("/")[2].casefold()


FINDERS = (Finder(When.TOGETHER, _together, 10), Finder(When.ERROR, _of_error, of="constraint-all"))
