"""Quotas compared with what the workloads linted with them ask for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.limits import MAX_RESULTS
from kubectl_dra.lint.analysis.claim_requests import items
from kubectl_dra.lint.analysis.pod_claims import references_of
from kubectl_dra.lint.context import Context, Item
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule

DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
CLAIMS: Final = "count/resourceclaims.resource.k8s.io"

# Where kinds say how many pods run at a time; one where they do not.
_REPLICAS: Final[Mapping[str, str]] = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}


class QuotaTooSmall(Rule):
    """A quota that its own workloads exceed."""

    code = "DRA411"
    name = "quota-too-small"
    severity = "warning"
    kinds = ("ResourceQuota",)
    scope = "set"

    def check(self, context: Context) -> Iterator[LintFinding]:
        hard = context.item.spec_field("hard")
        limits = {str(key): _whole(value) for key, value in hard.items()} if isinstance(hard, dict) else {}
        # A quota with a scope counts only some of the pods, and no claims at all.
        if context.item.spec_field("scopes") or context.item.spec_field("scopeSelector"):
            return
        if not any(key == CLAIMS or key.endswith(DEVICES) for key in limits):
            return
        asked = list(_asked(context))
        for key, limit in limits.items():
            wanting = [(title, counted[key]) for title, counted in asked if counted[key]]
            total = sum(number for _, number in wanting)
            if limit is None or not wanting or total <= limit:
                continue
            most_title, most = max(wanting, key=lambda pair: pair[1])
            what = "claims" if key == CLAIMS else f"devices of class {key.removesuffix(DEVICES)}"
            whose = most_title if most > limit or len(wanting) == 1 else f"the {len(wanting)} objects here together"
            yield self.finding(
                ("spec", "hard", key),
                f"the quota allows {limit} {what}, and {whose} "
                f"{'asks' if whose == most_title else 'ask'} for {most if whose == most_title else total}",
                fix=f"Raise it to {total}, or ask for less.",
            )


def _whole(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None


def _asked(context: Context) -> Iterator[tuple[str, Counter[str]]]:
    """What each claim and workload of the quota's namespace counts, by quota key."""
    namespace = context.item.namespace
    for item in context.world.items:
        if item.namespace != namespace:
            continue
        if item.kind == "ResourceClaim" and item.owner is None:
            yield item.title, _counted(item, 1)
        elif item.kind == "Pod":
            number = _pods(item)
            counted: Counter[str] = Counter()
            for reference in references_of(item.raw) if number else ():
                given = context.world.templates(reference.target, namespace)
                if reference.kind == "ResourceClaimTemplate" and len(given) == 1:
                    counted.update(_counted(given[0], number))
            yield item.title, counted


def _pods(item: Item) -> int:
    """How many pods an item runs at a time; 0 if unknown."""
    owner = item.owner
    if owner is None:
        return 1
    field = _REPLICAS.get(owner.kind)
    if field is None:
        return 0
    number = owner.spec_field(field)
    return 1 if number is None else number if isinstance(number, int) else 0


def _counted(item: Item, times: int) -> Counter[str]:
    """What a claim, or that many claims of a template, count. firstAvailable counts, per class, the most of
    any alternative.
    """
    out: Counter[str] = Counter({CLAIMS: times})
    spec: Any = (item.v1 or {}).get("spec")
    if item.kind == "ResourceClaimTemplate":
        spec = spec.get("spec") if isinstance(spec, dict) else None
    for request in items(spec.get("devices") if isinstance(spec, dict) else None, "requests"):
        most: Counter[str] = Counter()
        for one in (request.get("exactly"), *items(request, "firstAvailable")):
            name = one.get("deviceClassName") if isinstance(one, dict) else None
            if isinstance(name, str) and isinstance(one, dict):
                most[f"{name}{DEVICES}"] = max(most[f"{name}{DEVICES}"], _devices(one))
        for key, number in most.items():
            out[key] += number * times
    return out


def _devices(request: Mapping[str, Any]) -> int:
    if request.get("allocationMode") == "All":
        return MAX_RESULTS
    count = request.get("count")
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 1


RULES = (QuotaTooSmall,)
