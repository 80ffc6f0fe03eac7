"""The API server's rejections as findings: one code per kind of violation, with the server's own rule as detail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

from kubectl_dra.lint.analysis.server_verdict import verdict_of, violations_of
from kubectl_dra.lint.context import Context, once
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.positions import token_range
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.manifests.changes import Path, Splice, value_at

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation

_CLAIM: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
spec:
  devices:
    requests:
"""
_REQUEST: Final = f"""\
{_CLAIM}\
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""
_POD: Final = """\
apiVersion: v1
kind: Pod
metadata:
  name: train
spec:
  resourceClaims:
  - name: gpu
    resourceClaimTemplateName: gpu
  containers:
  - name: train
    image: example.com/train:1
    resources:
      claims:
      - name: gpu
"""
_SLICE: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: node-1
spec:
  driver: gpu.example.com
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  nodeName: node-1
  devices:
  - name: gpu-0
    allowMultipleAllocations: true
    capacity:
      memory:
        value: 40Gi
        requestPolicy:
          default: 1Gi
          validRange: {min: 1Gi, step: "0"}
"""


class ServerRule(Rule):
    """A rule whose findings are the API server's: all of them share one verdict per object."""

    severity = "error"
    kinds = ANY_KIND
    good = _REQUEST
    reasons: ClassVar[tuple[str, ...]] = ()
    """The server's reasons that the rule covers."""
    server_rules: ClassVar[tuple[str, ...]] = ()
    """The server's rules that only this rule covers, whatever their reason."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        return map(partial(self._found, context), _by_code(context).get(self.code, ()))

    def _found(self, context: Context, found: Violation) -> LintFinding:
        from kubectl_dra.lint.analysis.rejection_fixes import remedy

        cel = None
        if found.cel_offset is not None:
            expression = value_at(context.raw, found.path)
            if isinstance(expression, str):
                cel = token_range(expression, found.cel_offset)
        return self.finding(
            found.path,
            found.message,
            fix=remedy(context, found) or _hinted(context, found),
            cel=cel,
            on_key=found.rule == "unknown-field",
            field=found.field,
            detail=found.rule,
        )


_HINT: Final = re.compile(r"did you mean '([A-Za-z_]\w*)'")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def _hinted(context: Context, found: Violation) -> Fix | None:
    """The name in an expression that the compiler suggests in place of the one at its position."""
    expression, hint = value_at(context.raw, found.path), _HINT.search(found.message)
    if hint is None or found.cel_offset is None or not isinstance(expression, str):
        return None
    offset = found.cel_offset
    span = None
    if expression[offset : offset + 1] == "(":
        before = list(_NAME.finditer(expression, 0, offset))
        span = before[-1].span() if before and before[-1].end() == offset else None
    else:
        name = _NAME.match(expression, offset + (expression[offset : offset + 1] == "."))
        span = None if name is None else name.span()
    if span is None:
        return Fix(f"Did you mean {hint[1]}?")
    return Fix(f"Write {hint[1]}", (Splice(found.path, *span, hint[1]),), "safe")


@once
def _by_code(context: Context) -> Mapping[str, list[Violation]]:
    """The server's violations by the code of the rule that represents them."""
    known: dict[str, list[Violation]] = {}
    for found in violations_of(context):
        code = _BY_RULE.get(found.rule) or _BY_REASON.get(found.reason)
        if code is not None:
            known.setdefault(code, []).append(found)
    return known


class UnknownField(ServerRule):
    """A field that does not exist."""

    code = "DRA101"
    name = "unknown-field"
    why = (
        "The API version has no such field here. kubectl asks the API server for strict validation, which rejects "
        "the object; other clients get a warning at best, and the field is dropped. Usually it is a misspelling, or "
        "a field of another version."
    )
    bad = f"{_CLAIM}    - name: gpu\n      deviceClassName: gpu.example.com\n"
    fixable = "safe"
    server_rules = ("unknown-field",)

    def check(self, context: Context) -> Iterator[LintFinding]:
        """One finding for all fields that one fix corrects together."""
        told: set[tuple[Path, str]] = set()
        for found in super().check(context):
            if found.fix is not None and found.fix.changes:
                # Fixes with one title in one place are the same.
                key = (found.path[:-1], found.fix.title)
                if key in told:
                    continue
                told.add(key)
            yield found


class WrongType(ServerRule):
    """A value that cannot be decoded."""

    code = "DRA102"
    name = "wrong-type"
    why = (
        "The value has a JSON type that the field does not take, such as a number where a string is needed. The API "
        "server cannot decode the object and rejects it before it looks at anything else."
    )
    bad = f'{_REQUEST}        count: "2"\n'
    fixable = "safe"
    reasons = ("BadRequest",)


class Required(ServerRule):
    """A required field is missing."""

    code = "DRA103"
    name = "required-field"
    why = "A field that the API server requires is missing or empty, so it rejects the object."
    bad = f"{_CLAIM}    - name: gpu\n"
    reasons = ("Required",)


class Invalid(ServerRule):
    """A value that the server's validation refuses."""

    code = "DRA104"
    name = "invalid-value"
    why = (
        "The value has the right type, but not a form or a combination that the API server accepts: a name with wrong "
        "characters, a number out of its range, fields that exclude one another. It rejects the object."
    )
    bad = f"{_CLAIM}    - name: GPU_1\n      exactly:\n        deviceClassName: gpu.example.com\n"
    fixable = "unsafe"
    reasons = ("Invalid", "TypeInvalid")


class TooLong(ServerRule):
    """A text over its limit."""

    code = "DRA105"
    name = "too-long"
    why = "The text is longer than the API server allows for this field, so it rejects the object."
    bad = f"{_REQUEST}    constraints:\n    - matchAttribute: example.com/{'a' * 33}\n"
    reasons = ("TooLong",)


class TooMany(ServerRule):
    """A list or map over its limit."""

    code = "DRA106"
    name = "too-many"
    why = "The list or map has more entries than the API server allows for this field, so it rejects the object."
    bad = _CLAIM + "".join(
        f"    - name: gpu-{index}\n      exactly:\n        deviceClassName: gpu.example.com\n" for index in range(33)
    )
    reasons = ("TooMany",)


class Duplicate(ServerRule):
    """Two entries that must differ."""

    code = "DRA107"
    name = "duplicate"
    why = (
        "Two entries of a list have the same name or value where the API server requires different ones, so it "
        "rejects the object."
    )
    bad = f"{_REQUEST}    - name: gpu\n      exactly:\n        deviceClassName: gpu.example.com\n"
    reasons = ("Duplicate",)


class NotSupported(ServerRule):
    """A value outside the allowed set."""

    code = "DRA108"
    name = "unsupported-value"
    why = (
        "The field takes one of a few values, spelled exactly as in Kubernetes, and this is not one of them. The API "
        "server rejects the object."
    )
    bad = f"{_REQUEST}        allocationMode: all\n"
    fixable = "safe"
    reasons = ("NotSupported",)


class Forbidden(ServerRule):
    """A field that must not be set here."""

    code = "DRA109"
    name = "forbidden"
    why = (
        "The field is fine by itself but must not be set here, because of another field, a feature gate or a label of "
        "the namespace. The API server rejects the object."
    )
    bad = f"{_POD}  nodeName: node-1\n  schedulingGates:\n  - name: example.com/wait\n"
    good = f"{_POD}  schedulingGates:\n  - name: example.com/wait\n"
    reasons = ("Forbidden",)


class NotFound(ServerRule):
    """A reference that leads nowhere."""

    code = "DRA110"
    name = "not-found"
    why = "The object refers to a part of itself that does not exist. The API server rejects it."
    bad = _POD.replace("      - name: gpu", "      - name: gpus")
    good = _POD
    fixable = "unsafe"
    reasons = ("NotFound",)


class ServerFails(ServerRule):
    """An object that makes the server itself fail."""

    code = "DRA111"
    name = "server-fails"
    why = (
        "The API server answers with an internal error (HTTP 500) instead of a reason: its own code fails on this "
        "object. The object is not created."
    )
    bad = _SLICE
    good = _SLICE.replace('step: "0"', "step: 1Gi")
    reasons = ("InternalError",)


class CelCompile(ServerRule):
    """A selector that does not compile."""

    code = "DRA112"
    name = "selector-does-not-compile"
    why = (
        "The expression is not valid CEL, or uses something that device selectors of this Kubernetes release do not "
        "have. The API server compiles every selector and rejects the object if one fails."
    )
    bad = f"{_REQUEST}        selectors:\n        - cel:\n            expression: device.driver = 'gpu.example.com'\n"
    good = f"{_REQUEST}        selectors:\n        - cel:\n            expression: device.driver == 'gpu.example.com'\n"
    fixable = "unsafe"
    server_rules = ("cel-compile", "cel-program")


class CelCost(ServerRule):
    """A selector whose worst case is too expensive."""

    code = "DRA113"
    name = "selector-too-expensive"
    why = (
        "The API server estimates the cost of the expression on the largest device there could be, and rejects it "
        "above 1,000,000. Loops inside loops, and matches on long texts inside loops, cost most."
    )
    bad = (
        f"{_REQUEST}        selectors:\n        - cel:\n            expression: >-\n"
        "              device.attributes.all(a, device.attributes.all(b, device.attributes.all(c,\n"
        "              device.attributes.all(d, a + b + c + d != ''))))\n"
    )
    good = CelCompile.good
    server_rules = ("cel-cost",)


class CelTooLong(ServerRule):
    """A selector over its length limit."""

    code = "DRA114"
    name = "selector-too-long"
    why = "An expression may have 10,240 bytes; the API server rejects longer ones without looking into them."
    bad = (
        f"{_REQUEST}        selectors:\n        - cel:\n"
        f"            expression: device.driver == '{'a' * 60}…'  # over 10,240 bytes\n"
    )
    good = CelCompile.good
    server_rules = ("cel-too-long",)


class ServerWarns(Rule):
    """A value accepted with a warning."""

    code = "DRA115"
    name = "server-warning"
    severity = "warning"
    kinds = ("ResourceSlice",)
    why = (
        "The API server creates the object but warns: the value is allowed only because older releases allowed it, "
        "and other components compare it in another form."
    )
    bad = _SLICE.replace("driver: gpu.example.com", "driver: GPU.example.com").replace('step: "0"', "step: 1Gi")
    good = _SLICE.replace('step: "0"', "step: 1Gi")

    def check(self, context: Context) -> Iterator[LintFinding]:
        verdict = verdict_of(context)
        for warning in verdict.warnings if verdict is not None and verdict.accepted else ():
            field, _, message = warning.partition(": ")
            # Other warnings are about the version, and DRA504's.
            if _FIELD.match(field):
                yield self.finding(tuple(field.split(".")), message, field=field)


_FIELD: Final = re.compile(r"spec(\.[A-Za-z]+)+\Z")

_REJECTIONS: Final[tuple[type[ServerRule], ...]] = (
    UnknownField,
    WrongType,
    Required,
    Invalid,
    TooLong,
    TooMany,
    Duplicate,
    NotSupported,
    Forbidden,
    NotFound,
    ServerFails,
    CelCompile,
    CelCost,
    CelTooLong,
)

RULES: Final[tuple[type[Rule], ...]] = (*_REJECTIONS, ServerWarns)
_BY_RULE: Final = {name: rule.code for rule in _REJECTIONS for name in rule.server_rules}
_BY_REASON: Final = {reason: rule.code for rule in _REJECTIONS for reason in rule.reasons}
