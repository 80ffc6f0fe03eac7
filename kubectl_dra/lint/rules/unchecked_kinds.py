"""Objects of other kinds that name devices: nothing else in them is checked, and that is said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.analysis.claim_requests import migrate
from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import ANY_KIND, Rule
from kubectl_dra.manifests.objects import BUILT_IN
from kubectl_dra.manifests.workloads import SINGLE_CONTAINERS, SPECS, TEMPLATES, key_of, pod_specs
from kubectl_dra.text import with_article

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


RULES = (NamedElsewhere,)
