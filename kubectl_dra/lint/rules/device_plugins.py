"""Where claims meet device plugins, quotas that count neither, and kinds in which nobody looks for them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.analysis.claim_requests import (
    drivers_of_claim,
    extended_requests,
    migrate,
    offered,
    references,
    speaks_of_network,
)
from kubectl_dra.lint.analysis.workload_fixes import key_fix, key_problem
from kubectl_dra.lint.context import Context, items, walked
from kubectl_dra.lint.finding import Fix, LintFinding
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.manifests.changes import Delete, fields_at
from kubectl_dra.manifests.objects import BUILT_IN
from kubectl_dra.manifests.workloads import SINGLE_CONTAINERS, SPECS, TEMPLATES, key_of, known_kind, pod_specs
from kubectl_dra.text import whole_number, with_article


class PluginAndClaim(
    Rule,
    code="DRA701",
    name="device-plugin-and-claim",
    severity="warning",
    kinds=("Pod", "ComputeDomain"),
    scope="set",
    migrates=True,
):
    """A device plugin's resource and a claim in one pod."""

    # A ComputeDomain says what the claim template is that its controller makes.

    def check(self, context: Context) -> Iterator[LintFinding]:
        spec = context.raw.get("spec")
        if context.item.kind != "Pod" or not items(spec, "resourceClaims"):
            return
        drivers = _known_drivers(context)
        signs = _signs(context.raw)
        for path, name, _ in _plugin_requests(spec):
            driver = _plugin_of(name, signs)
            if driver is not None and driver not in drivers and (claim := _called_after(context, path, name)):
                yield self.finding(
                    path,
                    f"{name} comes from the device plugin, and the container also uses the claim {claim}",
                    fix=migrate(
                        context.item,
                        "Look what the claim is for: if for the same devices, remove one of the two. To make a claim "
                        f"of {name}",
                    ),
                    on_key=True,
                )
            # Claims of another vendor's driver, such as a network's, do not meet this plugin.
            if driver in drivers:
                yield self.finding(
                    path,
                    f"{name} comes from the device plugin, and the pod has a claim for {driver} as well",
                    fix=migrate(
                        context.item,
                        f"Remove the claim, or {name}. To make a request of {name}, or learn what is in the way",
                    ),
                    on_key=True,
                )


class PluginResource(
    Rule,
    code="DRA703",
    name="device-plugin-resource",
    severity="info",
    kinds=("Pod",),
    scope="set",
    migrates=True,
    told_by=("DRA701",),
):
    """Devices requested from a device plugin."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        spec = context.raw.get("spec")
        # Beside a claim for the same driver it is more than worth knowing: DRA701.
        claimed = _known_drivers(context) if items(spec, "resourceClaims") else frozenset()
        names, signs = set[str](), _signs(context.raw)
        for path, name, amount in _plugin_requests(spec):
            driver = _plugin_of(name, signs)
            if driver is None or driver in claimed or name in names or name in offered(context):
                continue
            names.add(name)
            instead = _or_a_class(context, name, driver)
            whole = isinstance(amount, int) or whole_number(str(amount)) is not None
            yield self.finding(
                path,
                f"{name} comes from a device plugin, not from the DRA driver {driver}{instead}",
                fix=migrate(
                    context.item,
                    "To ask the DRA driver instead, or learn what is in the way"
                    if whole
                    else "Put the number in. To ask the DRA driver then",
                ),
                on_key=True,
            )


def _plugin_requests(spec: Any) -> Iterator[tuple[FieldPath, str, Any]]:
    """Every limit of a pod's containers that is not zero: path, name, amount."""
    for each in extended_requests(spec):
        if each.path[-2] == "limits":
            yield each.path, each.name, each.amount


def _or_a_class(context: Context, resource: str, name: str) -> str:
    """What serves the resource besides a device plugin, in the target release."""
    if not context.target.has("DRAExtendedResource"):
        return ""
    driver = catalogue().driver(name)
    if driver is not None and driver.offers(resource):
        return "; the newest release of that driver can serve it, too, if a DeviceClass has it as extendedResourceName"
    return ", unless a DeviceClass has it as extendedResourceName"


class VisibleDevices(
    Rule, code="DRA702", name="visible-devices", severity="warning", kinds=("Pod",), scope="set", fixable="unsafe"
):
    """NVIDIA_VISIBLE_DEVICES beside a claim."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        spec = context.raw.get("spec")
        if not items(spec, "resourceClaims"):
            return
        drivers = _claimed_drivers(context)
        if drivers is not None and not any("nvidia" in driver for driver in drivers):
            return
        for list_name in ("initContainers", "containers"):
            for index, container in enumerate(items(spec, list_name)):
                for position, variable in enumerate(items(container, "env")):
                    if variable.get("name") != "NVIDIA_VISIBLE_DEVICES" or variable.get("value") in ("void", "none"):
                        continue
                    if not items(container, "resources", "claims"):
                        continue
                    path: FieldPath = ("spec", list_name, index, "env", position)
                    gone = path if len(items(container, "env")) > 1 else path[:-1]
                    yield self.finding(
                        path,
                        "NVIDIA_VISIBLE_DEVICES does not belong beside a claim: no value of it means DRA",
                        fix=Fix.guess("Remove the variable", Delete(gone)),
                    )


class LostClaim(Rule, code="DRA704", name="claim-lost-by-kind", severity="error", kinds=ANY_KIND):
    """A claim in a kind whose definition, webhook or controller does not pass it on to the pod."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        known = known_kind(context.raw)
        if known is None:
            return
        for path in _lost(context.raw, known.loses):
            message = f"{with_article(context.item.kind)} does not keep {path[-1]}: {known.why}"
            yield self.finding(path, message, fix=known.way_out, on_key=True)


def _lost(raw: Mapping[str, Any], fields: Sequence[str]) -> list[FieldPath]:
    """Where an object claims devices: lists of a pod's claims, or those of containers if there are none."""
    lists: dict[str, list[FieldPath]] = {field: [] for field in fields}
    for path, value in walked({key: raw[key] for key in raw if key not in ("metadata", "status")}):
        of_pod = path[-1] == "resourceClaims" or path[-2:-1] == ("resources",)
        if path[-1] in lists and of_pod and value and isinstance(value, list):
            lists[str(path[-1])].append(path)
    return next((paths for paths in lists.values() if paths), [])


class QuotaKey(
    Rule, code="DRA410", name="quota-key-counts-nothing", severity="error", kinds=("ResourceQuota",), fixable="unsafe"
):
    """A quota key that counts nothing."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        hard = fields_at(context.item.raw, "spec", "hard")
        for key in hard:
            problem = key_problem(str(key))
            # Without a slash the API server refuses it.
            if problem is None or "/" not in str(key):
                continue
            path: FieldPath = ("spec", "hard", key)
            fix = key_fix(context.raw, path)
            yield self.finding(path, f"{key} counts nothing: {problem.why}", fix=fix, on_key=True)


def _plugin_of(resource: str, signs: Set[str]) -> str | None:
    """The driver for the devices that a device plugin offers under a resource name, in a pod with these signs."""
    driver = catalogue().of_resource(resource, signs)
    return None if driver is None else driver.name


def _signs(pod: Mapping[str, Any]) -> Set[str]:
    """What tells in a pod which vendor shares devices under another one's names."""
    resources = {name for _, name, _ in _plugin_requests(pod.get("spec"))}
    scheduler = fields_at(pod, "spec").get("schedulerName")
    return {*resources, *map(str, fields_at(pod, "metadata", "annotations")), *([scheduler] if scheduler else ())}


def _called_after(context: Context, path: FieldPath, resource: str) -> str:
    """A claim of the container that is not given here, and is called after the devices of a resource."""
    container: Any = context.raw
    for step in path[:-3]:
        container = container[step]
    used = {str(use.get("name")) for use in items(container, "resources", "claims")}
    word = resource.rpartition("/")[2]
    for reference in references(context):
        given = context.given.find(reference.kind, reference.target, context.item.namespace)
        called = word in (*reference.name.split("-"), *reference.target.split("-"))
        if reference.name in used and not given and called and not speaks_of_network(context, reference):
            known = drivers_of_claim(context, reference)
            if known is None:
                return reference.name
    return ""


def _known_drivers(context: Context) -> frozenset[str]:
    """The drivers of those of the pod's claims that are known."""
    by_reference = (drivers_of_claim(context, reference) for reference in references(context))
    return frozenset(driver.name for drivers in by_reference for driver in drivers or ())


def _claimed_drivers(context: Context) -> frozenset[str] | None:
    """The drivers of the pod's claims; None if one of them is unknown."""
    names: set[str] = set()
    for reference in references(context):
        drivers = drivers_of_claim(context, reference)
        if drivers is None:
            if not speaks_of_network(context, reference):
                return None
            continue
        names.update(driver.name for driver in drivers)
    return frozenset(names)


# Objects of other kinds that name devices: nothing else in them is checked, and that is said.

_NO_REQUESTS: Final = frozenset(
    (
        *("affinity", "annotations", "apiVersion", "image", "key", "kind", "labels", "matchLabels", "metadata"),
        *("nodeSelector", "status", "taints", "tolerations"),
    )
)
"""Fields whose keys and values look like names of resources and ask for none."""
_NAMES: Final = re.compile(r"(?<![\w./:-])[a-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(?=\s*[\"']?\s*:)")
"""A key of a text that may be the name of a resource."""
_POLICIES: Final = ("gatekeeper.sh", "kyverno.io")
"""Groups whose objects say what others may ask for."""
_CONTAINERS: Final = ("initContainers", "containers", *SINGLE_CONTAINERS)
_MACHINE_GROUP: Final = "kubevirt.io"
_MACHINE_LISTS: Final = ("gpus", "hostDevices")


class NamedElsewhere(Rule, code="DRA705", name="devices-not-checked", severity="info", kinds=ANY_KIND, migrates=True):
    """An object of a kind that lint does not check, and that names a device plugin's resource."""

    def check(self, context: Context) -> Iterator[LintFinding]:
        if context.item.owner is not None:
            return
        kind = with_article(context.item.kind)
        for name, path in named_devices(context.raw).items():
            yield self.finding(
                path,
                f"lint does not check what {kind} does with {name}, which comes from a device plugin",
                fix=migrate(context.item, "To see whether a claim can take its place"),
                on_key=True,
            )


def named_devices(raw: Mapping[str, Any]) -> Mapping[str, FieldPath]:
    """The resources of device plugins that an object names where no rule looks, each with its first place."""
    key = key_of(raw)
    if "." not in key[0] or key[0] in BUILT_IN or key[0].endswith(_POLICIES):
        return {}
    checked: set[FieldPath] = set()
    if key in TEMPLATES or key in SPECS:
        checked = {(*spec.path, field) for spec in pod_specs(raw) for field in _CONTAINERS}
    out: dict[str, FieldPath] = {}
    for name, path in _named(raw, (), checked, machine=key[0].endswith(_MACHINE_GROUP)):
        out.setdefault(name, path)
    return out


def _named(
    value: Any, path: FieldPath, checked: Collection[FieldPath], *, machine: bool
) -> Iterator[tuple[str, FieldPath]]:
    if path in checked:
        return
    if isinstance(value, Mapping):
        for key, below in value.items():
            here = (*path, key)
            name = str(key).removeprefix("requests.").removeprefix("limits.")
            if key in _NO_REQUESTS:
                continue
            if "/" in name and not isinstance(below, Mapping | list):
                if str(below) != "0" and _is_resource(name):
                    yield name, here
            elif machine and key == "deviceName" and path[-2:-1] and path[-2] in _MACHINE_LISTS:
                yield str(below), here
            else:
                yield from _named(below, here, checked, machine=machine)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _named(below, (*path, index), checked, machine=machine)
    elif isinstance(value, str) and "/" in value:
        # A text may be a manifest, or the values of a chart.
        for name in _NAMES.findall(value) if "\n" in value else (value,):
            if _is_resource(name):
                yield name, path


def _is_resource(name: str) -> bool:
    return catalogue().of_resource(name) is not None


RULES = (QuotaKey, PluginAndClaim, PluginResource, VisibleDevices, LostClaim, NamedElsewhere)
