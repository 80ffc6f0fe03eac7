"""Changes that might make claims fit, as values: what to write, and the cluster with the change."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from kubectl_dra.allocation.selectors import Selectors
from kubectl_dra.api.claims import ALL, DeviceConstraint, DeviceRequest
from kubectl_dra.api.nodes import Node
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.api.slices import PoolID, ResourceSlice
from kubectl_dra.api.taints import DeviceTaint
from kubectl_dra.explain.phrase import Phrase, Words, say
from kubectl_dra.explain.question.what_if_flag import WhatIfChange, edit_of
from kubectl_dra.explain.remedies.claim_edits import RequestPlace, limiting
from kubectl_dra.explain.remedies.proof_result import ChangeStep, Price, StepKind, StepTarget, StepValue
from kubectl_dra.explain.remedies.prove import Change, WhatIf


class RequestChange(Change, frozen=True):
    """A change of one request."""

    TEXT = "{where}{what}"
    place: RequestPlace

    @property
    def where(self) -> Words:
        """The place; nobody wrote a request of a claim for extended resources."""
        if self.place.extended:
            return ""
        text = 'in request "{name}" of claim {claim} ' if self.place.of else 'in request "{name}" '
        return say(text, name=self.place.name, claim=self.place.of)

    @property
    def what(self) -> Phrase:
        """The change without its place."""
        raise NotImplementedError

    @property
    def supposed(self) -> Sequence[WhatIfChange]:
        """The change as values of ``--what-if``, which say what it means."""
        raise NotImplementedError

    @property
    def what_if(self) -> WhatIfChange | None:
        # Nobody writes the claim for extended resources.
        clear = len(self.supposed) == 1 and not self.place.extended
        return self.supposed[0] if clear else None

    def edited(self, spec: DeviceRequest) -> DeviceRequest:
        """The request with the change."""
        for change in self.supposed:
            spec = edit_of(change)(spec)
        return spec

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.editing(self.place, self.edited)

    def step_in(
        self, what_if: WhatIf, kind: StepKind, field: str, before: StepValue, after: StepValue, term: str = ""
    ) -> ChangeStep:
        """A step at a field of the request; for an extended resource at the limits of the pod's containers."""
        pod = what_if.pod.key if what_if.pod is not None else ""
        if self.place.extended and pod:
            return ChangeStep(kind, StepTarget(pods=(pod,), field="containers[].resources.limits"), before, after)
        claim = what_if.claims[self.place.claim].key
        return ChangeStep(kind, StepTarget((claim,), request=self.place.name, field=field, term=term), before, after)


class LowerCount(RequestChange, frozen=True):
    """Another number of devices; ``every``: the request asks for all."""

    COST = 2
    count: int
    every: bool = False

    @property
    def about(self) -> Hashable:
        return self.place, "count"

    @property
    def what(self) -> Phrase:
        if self.every:
            return say("ask for {count:device} instead of all", count=self.count)
        text = "lower count to {count}"
        if self.place.extended:
            text = "lower the pod's limit of the extended resource to {count}"
        if self.place.container:
            text = "lower the limit of {resource} in container {container} to {count}"
        return say(text, count=self.count, resource=self.place.resource, container=self.place.container)

    @property
    def supposed(self) -> Sequence[WhatIfChange]:
        return (WhatIfChange(self.place.typed, "count", str(self.count)),)

    def made_in(self, what_if: WhatIf) -> WhatIf:
        if self.place.container:
            return what_if.limiting(self.place.container, self.place.resource, self.count)
        return super().made_in(what_if)

    def in_template(self, pod: Pod) -> Pod:
        if not self.place.container:
            return pod
        return limiting(pod, self.place.container, self.place.resource, self.count)

    def step(self, what_if: WhatIf) -> ChangeStep:
        before = ALL if self.every else what_if.request(self.place).count
        return self.step_in(what_if, StepKind.LOWER_COUNT, "count", before, self.count)


class UseClass(RequestChange, frozen=True):
    """Another DeviceClass."""

    PRICE = Price.OTHER_DEVICES
    device_class: str

    @property
    def about(self) -> Hashable:
        return self.place, "class"

    @property
    def what(self) -> Phrase:
        return say("use class {name}", name=self.device_class)

    @property
    def supposed(self) -> Sequence[WhatIfChange]:
        return (WhatIfChange(self.place.typed, "class", self.device_class),)

    def step(self, what_if: WhatIf) -> ChangeStep:
        before = what_if.request(self.place).device_class
        return self.step_in(what_if, StepKind.USE_CLASS, "deviceClassName", before, self.device_class)


class Tolerate(RequestChange, frozen=True):
    """Tolerations for taints."""

    taints: tuple[DeviceTaint, ...]

    @property
    def about(self) -> Hashable:
        return self.place, tuple(map(str, self.taints))

    @property
    def price(self) -> Price:
        return Price.TOLERATE if self._known else Price.WAIT

    @property
    def cost(self) -> int:
        return 2 if self._known else 4

    @property
    def _known(self) -> bool:
        """Whether people set the taints, and no driver."""
        return all(taint.rule for taint in self.taints)

    @property
    def what(self) -> Phrase:
        if self._known:
            return say("tolerate {taints}", taints=self.taints)
        text = "tolerate {taints} (the driver set this taint for a reason: find out first what it means)"
        return say(text, taints=self.taints)

    @property
    def supposed(self) -> Sequence[WhatIfChange]:
        return tuple(WhatIfChange(self.place.typed, "toleration", str(taint)) for taint in self.taints)

    def step(self, what_if: WhatIf) -> ChangeStep:
        return self.step_in(what_if, StepKind.TOLERATE_DEVICE_TAINTS, "tolerations", None, self.taints)


class LessCapacity(RequestChange, frozen=True):
    """A smaller amount of one capacity."""

    name: str
    amount: Quantity

    @property
    def about(self) -> Hashable:
        return self.place, self.name

    @property
    def what(self) -> Phrase:
        return say("ask for at most {amount} of {name}", amount=self.amount, name=self.name)

    @property
    def supposed(self) -> Sequence[WhatIfChange]:
        return (WhatIfChange(self.place.typed, "capacity", f"{self.name}={self.amount}"),)

    def step(self, what_if: WhatIf) -> ChangeStep:
        before = (what_if.request(self.place).capacity or {}).get(self.name)
        field = f"capacity.requests[{self.name}]"
        was = str(before) if before is not None else None
        return self.step_in(what_if, StepKind.LOWER_CAPACITY, field, was, str(self.amount))


class ReplaceTerm(RequestChange, frozen=True):
    """A term of a selector with one constant replaced; ``new_term`` is "true" if the term is dropped.

    ``term`` is its number in the selector ``index``; ``old`` and ``new`` are the constant as written, which is there
    ``once`` in all selectors of the request, or else told with its term. ``near`` are further nodes on which to try it.
    """

    ASIDE = frozenset(("selectors", "near", "amount", "once"))
    selectors: Selectors
    index: int
    term: int
    old_term: str
    new_term: str = "true"
    old: str = ""
    new: str = ""
    near: tuple[Node, ...] = ()
    amount: bool = False
    once: bool = True

    @property
    def about(self) -> Hashable:
        return self.place, "selector", self.index, self.term

    @property
    def price(self) -> Price:
        return Price.EDIT if self.amount else Price.OTHER_DEVICES

    @property
    def cost(self) -> int:
        return 0 if self.old else 1

    @property
    def what(self) -> Phrase:
        if self.old and not self.once:
            return say("write {new:flat} in place of {old:flat}", new=self.new_term, old=self.old_term)
        if self.old:
            return say("write {new} in place of {old}", new=self.new, old=self.old)
        return say("drop {term:flat}", term=self.old_term)

    @property
    def supposed(self) -> Sequence[WhatIfChange]:
        # The whole selector has to be supposed, and with other changes of it: see ``combine``.
        return (WhatIfChange(self.place.typed, "selector", ""),)

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return super().made_in(what_if).also_on(self.near)

    def edited(self, spec: DeviceRequest) -> DeviceRequest:
        """Finds the term by its text, so that several terms of one selector can be replaced in turn."""
        expression = spec.selectors[self.index] or ""
        program = next((term for term in self.selectors.terms(expression) if term.expression == self.old_term), None)
        if program is None:
            return spec
        changed = _with_term(expression, program.start, program.end, self.new_term)
        return replace(spec, selectors=(*spec.selectors[: self.index], changed, *spec.selectors[self.index + 1 :]))

    def step(self, what_if: WhatIf) -> ChangeStep:
        field = f"selectors[{self.index}].cel.expression"
        if self.old:
            old, new = (self.old, self.new) if self.once else (self.old_term, self.new_term)
            return self.step_in(what_if, StepKind.REPLACE_VALUE, field, old, new, self.old_term)
        return self.step_in(what_if, StepKind.DROP_TERM, field, self.old_term, None, self.old_term)


def _with_term(expression: str, start: int, end: int, term: str) -> str:
    """The expression with another term at this place; of a dropped one nothing stays where it stands by itself."""
    before, after = expression[:start].rstrip(), expression[end:].lstrip()
    if term == "true" and before.endswith("&&") and (not after or after.startswith("&&")):
        return f"{before.removesuffix('&&').rstrip()} {after}".rstrip()
    if term == "true" and not before and after.startswith("&&"):
        return after.removeprefix("&&").lstrip()
    return expression[:start] + term + expression[end:]


class DropConstraint(Change, frozen=True):
    """A constraint of a claim left out; ``only``: the claims have no other."""

    TEXT = "drop the constraint {constraint} of claim {key}"
    ASIDE = frozenset(("only",))
    claim: int
    key: str
    constraint: DeviceConstraint
    only: bool = False

    @property
    def about(self) -> Hashable:
        return self.claim, self.constraint

    @property
    def what_if(self) -> WhatIfChange | None:
        return WhatIfChange("", "constraints", "none") if self.only else None

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.with_constraint(self.claim, self.constraint, None)

    def step(self, what_if: WhatIf) -> ChangeStep:
        number = next(
            n for n, constraint in enumerate(what_if.claims[self.claim].constraints) if constraint == self.constraint
        )
        target = StepTarget((self.key,), field=f"devices.constraints[{number}]")
        return ChangeStep(StepKind.DROP_CONSTRAINT, target, self.constraint)


class CompletePool(Change, frozen=True):
    """A pool whose missing slices arrive; only devices already published count."""

    TEXT = "wait until pool {pool} is complete ({lacking:slice} {state})"
    ASIDE = frozenset(("whole", "near"))
    PRICE = Price.WAIT
    pool: PoolID
    missing: int
    whole: Sequence[ResourceSlice]
    near: Sequence[Node]

    @property
    def lacking(self) -> int:
        """Number of slices that are missing or surplus."""
        return abs(self.missing)

    @property
    def state(self) -> str:
        """Whether slices are missing or surplus."""
        return "missing" if self.missing > 0 else "too many"

    @property
    def about(self) -> Hashable:
        return "pool", self.pool

    def made_in(self, what_if: WhatIf) -> WhatIf:
        return what_if.publishing(self.whole, frozenset(slice_.name for slice_ in self.whole)).also_on(self.near)

    def step(self, what_if: WhatIf) -> ChangeStep:
        present = len(self.whole)
        return ChangeStep(StepKind.COMPLETE_POOL, StepTarget(pool=self.pool), present, present + self.missing)


def selector_of(spec: DeviceRequest) -> str:
    """All selectors of a request as one value of ``--what-if``, without dropped terms."""
    texts = [" ".join(text.split()) for text in spec.selectors if text and text.strip() != "true"]
    return (texts[0] if len(texts) == 1 else " && ".join(f"({text})" for text in texts)) or "none"
