"""Taint rules, tolerations and admin access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.admission.server.metadata import admin_label
from kubectl_dra.api.behaviour import ADMIN_NEEDS_LABEL, RULE_FOR_ALL
from kubectl_dra.api.dra_fields import fields
from kubectl_dra.api.releases import gate_default
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.claim_requests import CLAIM_KINDS, alternatives
from kubectl_dra.lint.analysis.server_verdict import verdict_of
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Append, Delete, fields_at, value_at

MEANT: Final = "kubectl-dra/selects-everything"
"""An annotation saying that a DeviceTaintRule intentionally selects every device."""

_MENDED = RULE_FOR_ALL.fixes[0]


class SelectsEverything(
    Rule, code="DRA801", name="taint-rule-selects-everything", severity="error", kinds=("DeviceTaintRule",)
):
    """A taint rule for every device of the cluster."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        selector = context.spec.get("deviceSelector")
        if not isinstance(selector, dict) or any(value is not None for value in selector.values()):
            return
        annotations = context.item.metadata.get("annotations")
        if isinstance(annotations, dict) and annotations.get(MEANT) == "true":
            return
        effect = value_at(context.spec, ("taint", "effect"))
        harm = {
            "NoExecute": ": all pods that use devices are evicted",
            "NoSchedule": ": no claim is allocated any more",
        }.get(str(effect), "")
        yield self.finding(
            ("spec", "deviceSelector"),
            f"an empty deviceSelector taints every device of the cluster{harm}",
            fix="Name driver, pool and device.",
        )


class SelectsNothing(
    Rule, code="DRA804", name="taint-rule-selects-nothing", severity="warning", kinds=("DeviceTaintRule",)
):
    """A taint rule for no device."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        if context.spec and context.spec.get("deviceSelector") is None:
            yield self.finding(
                ("spec",),
                f"without deviceSelector the rule taints nothing, or every device with schedulers before {_MENDED}",
                fix="Add deviceSelector with driver and pool.",
            )


class SelectsAnyDriver(
    Rule, code="DRA805", name="taint-rule-without-driver", severity="warning", kinds=("DeviceTaintRule",)
):
    """A taint rule for a pool or device of any driver."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        selector = context.spec.get("deviceSelector")
        if (
            isinstance(selector, dict)
            and not selector.get("driver")
            and (selector.get("pool") or selector.get("device"))
        ):
            named = " and ".join(key for key in ("pool", "device") if selector.get(key))
            yield self.finding(
                ("spec", "deviceSelector"),
                f"{named} without driver may mean devices of several drivers",
                fix="Add driver.",
            )


class TolerationDoesNotStay(
    Rule,
    code="DRA802",
    name="toleration-does-not-stay",
    severity="warning",
    kinds=CLAIM_KINDS,
    releases=fields("ExactDeviceRequest")["tolerations"].releases,
    fixable="unsafe",
):
    """A toleration that lets the pod start but not stay."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for alternative in alternatives(context):
            tolerations = items(alternative.content, "tolerations")
            for index, toleration in enumerate(tolerations):
                # The API server refuses an unknown operator; a copy would have it too.
                if toleration.get("effect") or toleration.get("operator", "") not in ("", "Equal", "Exists"):
                    continue
                if any(_stays(other, toleration) for other in tolerations):
                    continue
                path: FieldPath = (*alternative.path, "tolerations", index)
                exists = toleration.get("operator") == "Exists"
                # The entry stays: it also tolerates what is no NoExecute.
                one_more = Append(path[:-1], {**toleration, "effect": "NoExecute"})
                yield self.finding(
                    path,
                    f"the toleration names no effect: a device with {_admitted(toleration)} is allocated even if "
                    "the taint is NoExecute, and then the pod is deleted",
                    fix=Fix.guess(
                        "Add the same toleration with effect: NoExecute"
                        + ("" if exists or toleration.get("key") else "; for all taints say operator: Exists as well"),
                        one_more,
                    ),
                )


class SecondsIgnored(
    Rule,
    code="DRA806",
    name="toleration-seconds-ignored",
    severity="warning",
    kinds=CLAIM_KINDS,
    releases=fields("ExactDeviceRequest")["tolerations"].releases,
    fixable="unsafe",
    fixed_where="the effect is not NoExecute",
):
    """tolerationSeconds that no taint counts, or fewer than none."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        for alternative in alternatives(context):
            for index, toleration in enumerate(items(alternative.content, "tolerations")):
                path: FieldPath = (*alternative.path, "tolerations", index, "tolerationSeconds")
                seconds, effect = toleration.get("tolerationSeconds"), toleration.get("effect")
                if not isinstance(seconds, int) or isinstance(seconds, bool):
                    continue
                if effect and effect != "NoExecute":
                    yield self.finding(
                        path,
                        f"tolerationSeconds has no effect with {effect}: only NoExecute deletes pods",
                        fix=Fix.guess("Remove it, or say effect: NoExecute if that is meant", Delete(path)),
                        on_key=True,
                    )
                elif seconds < 0:
                    yield self.finding(
                        path,
                        f"tolerationSeconds: {seconds} counts as 0: the pod is deleted as soon as the taint comes",
                        fix="Write how long the pod may stay, or remove it to let the pod stay for good.",
                    )


class AdminAccess(
    Rule,
    code="DRA803",
    name="admin-access-namespace",
    severity="error",
    kinds=CLAIM_KINDS,
    scope="set",
    releases=ADMIN_NEEDS_LABEL,
    otherwise={"info": "the labels of the namespace are not known"},
):
    """Admin access in a namespace that does not allow it."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        admin = [alternative for alternative in alternatives(context) if alternative.content.get("adminAccess") is True]
        off = gate_default("DRAAdminAccess", context.release) and not context.target.has("DRAAdminAccess")
        label = admin_label(context.release)
        if not admin or off or label is None:
            return
        name = context.item.namespace
        labels = self._labels(context, name)
        if labels is None:
            verdict = verdict_of(context)
            for alternative in admin if verdict is None or verdict.unsure else ():
                yield self.finding(
                    (*alternative.path, "adminAccess"),
                    f"it is admitted only if namespace {name or 'default'} has the label {label}=true, which the "
                    "given objects do not show",
                    fix="Also give the Namespace, or check against the cluster: --live, --snapshot.",
                    severity="info",
                )
            return
        if labels.get(label) == "true":
            return
        old = next((key for key in labels if key.endswith("/admin-access") and key != label), None)
        remark = f"; it has {old}, which release {context.release} does not read" if old else ""
        if label in labels:
            remark = f'; its value must be "true", not "{labels[label]}"'
        for alternative in admin:
            yield self.finding(
                (*alternative.path, "adminAccess"),
                f"namespace {name or 'default'} has no label {label}=true{remark}",
                fix=f"Give it the label {label}=true",
            )

    def _labels(self, context: Context, name: str) -> Mapping[str, Any] | None:
        """The labels of the namespace, from the manifests or the snapshot; None if unknown."""
        if name and (given := context.given.find("Namespace", name)):
            return fields_at(given[-1].metadata, "labels")
        snapshot = context.snapshot
        known = snapshot.namespaces.get(name or "default") if snapshot is not None else None
        return None if known is None else known.labels


def _admitted(toleration: Mapping[str, Any]) -> str:
    """The taints that a toleration without an effect matches."""
    key, value = toleration.get("key"), toleration.get("value") or ""
    if toleration.get("operator") == "Exists":
        return f"a taint {key}" if key else "any taint"
    # Without an operator it is Equal, which compares the values, of whatever keys where none is given.
    named = f"a taint {key}" if key else "a taint of any key"
    return f"{named} and the value {value}" if value else f"{named} and no value"


def _stays(other: Mapping[str, Any], toleration: Mapping[str, Any]) -> bool:
    if other.get("effect") != "NoExecute":
        return False
    if other.get("key") and other.get("key") != toleration.get("key"):
        return False
    if other.get("operator") == "Exists":
        return True
    return toleration.get("operator") != "Exists" and (other.get("value") or "") == (toleration.get("value") or "")


RULES = (SelectsEverything, SelectsNothing, SelectsAnyDriver, TolerationDoesNotStay, AdminAccess, SecondsIgnored)
