"""CPUs of a claim beside the requests for cpu, which scheduler and kubelet count without knowing of the claim.

From kubernetes-sigs/dra-driver-cpu@de98098: ``docs/user/workload-requirements.md``, ``pkg/store/claim_tracker.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.lint.analysis.claim_requests import Reference, drivers_of_claim, references
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import Rule
from kubectl_dra.manifests.changes import Set, fields_at, value_at

DRIVER: Final = "dra.cpu"
COUNTED: Final = "DRANodeAllocatableResources"
"""The gate with which scheduler and kubelet count the CPUs of claims themselves, if the driver says how."""


class CpusBesideClaim(
    Rule,
    code="DRA609",
    name="cpus-beside-claim",
    severity="warning",
    kinds=("Pod",),
    scope="set",
    fixable="unsafe",
    otherwise={"error": "two containers use one claim"},
    fixed_where="the container requests other CPUs than it claims",
):
    """CPUs of a claim that the container does not request alike, or that two containers want."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        claims = {
            reference.name: _cpus(context, reference)
            for reference in references(context)
            if any(driver.name == DRIVER for driver in drivers_of_claim(context, reference) or ())
        }
        spec, users = context.raw.get("spec"), dict[str, str]()
        for field in ("initContainers", "containers") if claims else ():
            for index, container in enumerate(items(spec, field)):
                path: FieldPath = ("spec", field, index, "resources")
                used = [str(use.get("name")) for use in items(container, "resources", "claims")]
                for position, name in enumerate(used):
                    if name in claims and users.setdefault(name, str(container.get("name"))) != container.get("name"):
                        yield self.finding(
                            (*path, "claims", position, "name"),
                            f"the CPU driver binds claim {name} to one container, and {users[name]} uses it already",
                            fix="Give each container a claim of its own.",
                            severity="error",
                        )
                known = [claims[name] for name in dict.fromkeys(used) if name in claims]
                if known and not context.target.has(COUNTED):
                    whole = [cpus for cpus in known if cpus is not None]
                    cpus = sum(whole) if len(whole) == len(known) else None
                    yield from self._requested(context, container, path, cpus)

    def _requested(
        self, context: Context, container: Mapping[str, Any], path: FieldPath, cpus: int | None
    ) -> Iterator[LintFinding]:
        """What a container requests otherwise than its claims have, in whole CPUs; None if that is open."""
        resources = fields_at(container, "resources")
        given = [
            amount for kind in ("requests", "limits") if (amount := value_at(resources, (kind, "cpu"))) is not None
        ]
        of_pod = fields_at(context.raw, "spec", "resources")
        if any(value_at(of_pod, (kind, "cpu")) is not None for kind in ("requests", "limits")) and not given:
            return
        if cpus is None:
            if not given:
                yield self.finding(
                    path,
                    f"{container.get('name')} requests no cpu and claims CPUs: scheduler and kubelet count only what "
                    "is requested",
                    fix="Write cpu in requests and limits, with as many CPUs as the claim has.",
                    on_key=True,
                )
            return
        if given and all(_whole(amount) == cpus for amount in given):
            return
        says = f"requests cpu {given[0]}" if given else "requests no cpu"
        changes = tuple(
            Set((*path, kind, "cpu"), str(cpus))
            if fields_at(resources, kind)
            else Set((*path, kind), {"cpu": str(cpus)})
            for kind in ("requests", "limits")
        )
        yield self.finding(
            path,
            f"{container.get('name')} {says} and claims {cpus}: scheduler and kubelet count only what is requested",
            fix=Fix.guess(f"Write cpu: {cpus} in requests and limits", *changes),
            on_key=True,
        )


def _cpus(context: Context, reference: Reference) -> int | None:
    """Number of CPUs of a claim; None if that depends on the devices, or is no number of CPUs."""
    total = 0
    for request in context.nearest(reference.kind, reference.target)[0].requests:
        exactly = fields_at(request, "exactly")
        asked = fields_at(exactly, "capacity", "requests")
        cpus = _whole(asked.get(f"{DRIVER}/cpu", asked.get("cpu")))
        count = exactly.get("count", 1)
        if (
            cpus is None
            or cpus < 1
            or not isinstance(count, int)
            or count < 1
            or exactly.get("allocationMode") == "All"
        ):
            return None
        total += cpus * count
    return total


def _whole(amount: Any) -> int | None:
    try:
        value = Quantity.parse(amount) if isinstance(amount, str | int | float) else None
    except QuantityError:
        return None
    return value.as_int64() if value is not None and value.is_integer() else None


RULES = (CpusBesideClaim,)
