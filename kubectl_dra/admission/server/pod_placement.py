"""Where and how a pod is scheduled: tolerations, affinity, topology spread, gates, priority.

From ``ValidatePodSpec`` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.model import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    ServerContext,
    Violations,
    field_text,
    missing,
    text,
    violation,
)
from kubectl_dra.admission.server.names import (
    check_choice,
    check_format,
    label_key_problems,
    label_problems,
    label_value_problems,
    unsupported,
)
from kubectl_dra.admission.server.selectors import check_label_selector, check_node_selector, check_node_selector_term
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.text import whole_number

COMPARISONS: Final = "TaintTolerationComparisonOperators"
"""The feature gate of the operators Lt and Gt (KEP-5471)."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_POLICIES: Final = ("Honor", "Ignore")
_UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
_INT32: Final = 2_147_483_647
_INT64: Final = 1 << 63


def check_placement(
    spec: Mapping[str, Any], at: FieldPath, context: ServerContext, labels: Mapping[str, Any]
) -> Violations:
    """The parts of a pod's spec that determine where and when it runs. ``labels`` are a pod's own, empty for
    a template.
    """
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from check_pod_toleration(toleration or {}, (*at, "tolerations", index), context)
    yield from _check_affinity(spec.get("affinity") or {}, (*at, "affinity"), labels)
    constraints = spec.get("topologySpreadConstraints") or ()
    yield from _check_spread(constraints, (*at, "topologySpreadConstraints"), labels)
    yield from _check_gates(spec.get("schedulingGates") or (), (*at, "schedulingGates"))
    yield from check_choice(spec.get("dnsPolicy"), (*at, "dnsPolicy"), "pod-dns-policy", _DNS)
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        where = (*at, "dnsConfig") if spec.get("dnsConfig") is None else (*at, "dnsConfig", "nameservers")
        yield missing(where, "pod-dns-policy", "must name servers with the dnsPolicy None")
    policy, where = spec.get("preemptionPolicy"), (*at, "preemptionPolicy")
    if policy == "":
        yield violation(where, REQUIRED, "pod-preemption-policy", "must not be empty")
    yield from check_choice(policy, where, "pod-preemption-policy", _PREEMPTION)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32:
        message = f"must be between 1 and {_INT32}"
        yield violation((*at, "activeDeadlineSeconds"), INVALID, "pod-deadline", message)


def check_pod_toleration(toleration: Mapping[str, Any], at: FieldPath, context: ServerContext) -> Violations:
    """A pod's toleration."""
    key, operator, value, effect = (text(toleration, name) for name in ("key", "operator", "value", "effect"))
    if key:
        yield from check_format(key, (*at, "key"), "pod-toleration-key", label_key_problems)
    elif operator != "Exists":
        message = "must be Exists when the key is empty, which matches all keys and values"
        yield violation((*at, "operator"), INVALID, "pod-toleration-operator", message)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        message = "must be NoExecute when tolerationSeconds is set"
        yield violation((*at, "effect"), INVALID, "pod-toleration-effect", message)
    if operator in ("", "Equal"):
        yield from check_format(value, (*at, "operator"), "pod-toleration-value", label_value_problems)
    elif operator == "Exists":
        if value:
            message = "its value must be empty with the operator Exists"
            yield violation((*at, "operator"), INVALID, "pod-toleration-value", message)
    elif operator in ("Lt", "Gt"):
        yield from _check_comparison(operator, value, at, context)
    else:
        yield unsupported(operator, (*at, "operator"), "pod-toleration-operator", ("Equal", "Exists"))
    yield from check_choice(effect, (*at, "effect"), "pod-toleration-effect", _EFFECTS)


def _check_comparison(operator: str, value: str, at: FieldPath, context: ServerContext) -> Violations:
    if not context.on(COMPARISONS):
        message = f"{operator!r} needs the feature gate {COMPARISONS}, which is off"
        yield violation((*at, "operator"), NOT_SUPPORTED, "pod-toleration-operator", message)
        return
    plain = value.removeprefix("-")
    decimal = plain.isascii() and plain.isdigit() and (plain == "0" or not plain.startswith("0")) and value != "-0"
    if not decimal:
        message = "must be a decimal whole number without leading zeros"
        yield violation((*at, "value"), INVALID, "pod-toleration-value", message)
    number = whole_number(plain, 19)
    if number is None or not -_INT64 <= (-number if value != plain else number) < _INT64:
        message = "must be a whole number of at most 64 bits"
        yield violation((*at, "value"), INVALID, "pod-toleration-value", message)


def _check_affinity(affinity: Mapping[str, Any], at: FieldPath, labels: Mapping[str, Any]) -> Violations:
    of_nodes = affinity.get("nodeAffinity") or {}
    here = (*at, "nodeAffinity")
    if of_nodes.get(_REQUIRED) is not None:
        yield from check_node_selector(of_nodes[_REQUIRED], (*here, _REQUIRED))
    for index, term in enumerate(of_nodes.get(_PREFERRED) or ()):
        where = (*here, _PREFERRED, index)
        yield from _check_weight(term or {}, where)
        preference = (term or {}).get("preference") or {}
        yield from check_node_selector_term(preference, (*where, "preference"), any_value=True)
    for name in ("podAffinity", "podAntiAffinity"):
        of_pods = affinity.get(name) or {}
        for index, term in enumerate(of_pods.get(_REQUIRED) or ()):
            yield from _check_term(term or {}, (*at, name, _REQUIRED, index), labels)
        for index, term in enumerate(of_pods.get(_PREFERRED) or ()):
            where = (*at, name, _PREFERRED, index)
            yield from _check_weight(term or {}, where)
            yield from _check_term((term or {}).get("podAffinityTerm") or {}, (*where, "podAffinityTerm"), labels)


def _check_weight(term: Mapping[str, Any], at: FieldPath) -> Violations:
    if not 1 <= (term.get("weight") or 0) <= 100:
        yield violation((*at, "weight"), INVALID, "pod-affinity-weight", "must be between 1 and 100")


def _check_term(term: Mapping[str, Any], at: FieldPath, labels: Mapping[str, Any]) -> Violations:
    """One pod affinity term."""
    rule = "pod-affinity-term"
    for name in ("labelSelector", "namespaceSelector"):
        if term.get(name) is not None:
            yield from check_label_selector(term[name], (*at, name))
    for namespace in term.get("namespaces") or ():
        yield from check_format(namespace, (*at, "namespace"), rule, label_problems)
    yield from _check_label_keys(term, at, labels)
    key = text(term, "topologyKey")
    if not key:
        yield missing((*at, "topologyKey"), rule)
    yield from check_format(key, (*at, "topologyKey"), rule, label_key_problems)


def _check_label_keys(term: Mapping[str, Any], at: FieldPath, labels: Mapping[str, Any]) -> Violations:
    """``matchLabelKeys`` and ``mismatchLabelKeys`` beside a selector, for a pod with these labels."""
    rule, selector = "pod-label-keys", term.get("labelSelector")
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(field) or ()
        if keys and selector is None:
            yield violation((*at, field), FORBIDDEN, rule, "must not be set without a labelSelector")
            continue
        for index, key in enumerate(keys):
            yield from check_format(key, (*at, field, index), rule, label_key_problems)
    matched, mismatched = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    if selector is not None:
        places = {key: index for index, key in enumerate(matched)}
        seen = set(selector.get("matchLabels") or ())
        # The server has added a requirement for each key of which the pod has the label.
        written = [text(expression, "key") for expression in selector.get("matchExpressions") or ()]
        for key in (*written, *(key for key in matched if key in labels)):
            if key in seen and key in places:
                message = "must not be in the labelSelector as well"
                field_of = field_text((*at, places[key]))
                yield violation((*at, "matchLabelKeys", places[key]), INVALID, rule, message, field=field_of)
            seen.add(key)
    for index, key in enumerate(matched):
        if key in mismatched:
            message = "must not be in mismatchLabelKeys as well"
            yield violation((*at, "matchLabelKeys", index), INVALID, rule, message)


def _check_spread(constraints: Sequence[Any], at: FieldPath, labels: Mapping[str, Any]) -> Violations:
    rule = "pod-topology-spread"
    seen = [(text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable")) for constraint in constraints]
    for index, written_constraint in enumerate(constraints):
        constraint = written_constraint or {}
        here = (*at, index)
        if (constraint.get("maxSkew") or 0) <= 0:
            yield violation((*here, "maxSkew"), INVALID, rule, "must be greater than 0")
        if not seen[index][0]:
            yield missing((*here, "topologyKey"), rule)
        when = seen[index][1]
        if when not in _UNSATISFIABLE:
            yield unsupported(when, (*here, "whenUnsatisfiable"), rule, _UNSATISFIABLE)
        if seen[index] in seen[index + 1 :]:
            field = (*here, "{topologyKey, whenUnsatisfiable}")
            yield violation(field, DUPLICATE, rule, "another constraint has the same topologyKey and whenUnsatisfiable")
        yield from _check_min_domains(constraint, here, when)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) is not None and constraint[name] not in _POLICIES:
                yield unsupported(constraint[name], (*here, name), rule, _POLICIES)
        yield from _check_label_keys(constraint, here, labels)
        if constraint.get("labelSelector") is not None:
            yield from check_label_selector(constraint["labelSelector"], (*here, "labelSelector"))


def _check_min_domains(constraint: Mapping[str, Any], at: FieldPath, when: str) -> Violations:
    least = constraint.get("minDomains")
    if least is None:
        return
    where = (*at, "minDomains")
    if least <= 0:
        yield violation(where, INVALID, "pod-topology-spread", "must be greater than 0")
    if when != "DoNotSchedule":
        message = "goes with whenUnsatisfiable DoNotSchedule only"
        yield violation(where, INVALID, "pod-topology-spread", message)


def _check_gates(gates: Sequence[Any], at: FieldPath) -> Violations:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = text(gate, "name")
        yield from check_format(name, (*at, index), "pod-scheduling-gate", label_key_problems)
        if name in seen:
            yield violation((*at, index), DUPLICATE, "pod-scheduling-gate", f"{name!r} is already in the list")
        seen.add(name)
