"""The fields of DRA kinds, and of claims in pods, as an editor shows them: the API's table, and what each means."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_dra.api import dra_fields as api
from kubectl_dra.api.releases import EVERY, GROUP, Release, default_version, versions_of
from kubectl_dra.api.schema import Field, row
from kubectl_dra.data.drivers import ConfigKind, Driver, catalogue, parsed
from kubectl_dra.lsp.cursor import Cursor, Keys
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES

_ROOT: Final[Mapping[str, Field]] = {
    "apiVersion": row("string"),
    "kind": row("string"),
    "metadata": row("ObjectMeta"),
}
_IN_PODS: Final = {
    ("resourceClaims",): "PodClaim",
    ("resources", "claims"): "ContainerClaim",
    ("resources",): "ResourceRequirements",
}
_FILE: Final = Path(__file__).with_name("prose.yaml")


@cache
def _prose() -> Mapping[str, Mapping[str, str]]:
    prose: Mapping[str, Mapping[str, str]] = parsed(_FILE.read_text("utf-8"))
    return prose


def prose(struct: str, name: str) -> str:
    """What a field of a struct means, in a sentence or two of Markdown; empty if nobody wrote it."""
    return _prose().get(struct, {}).get(name, "") or _prose()["any"].get(name, "")


def struct_at(kind: str, api_version: str, path: Sequence[str]) -> str:
    """The struct at a path of a DRA kind, or of a pod's spec and its claims; empty for anything else."""
    group, _, version = api_version.rpartition("/")
    if kind in api.KINDS:
        return "ObjectMeta" if tuple(path) == ("metadata",) else api.struct_at(kind, version, path)
    if any(_leads_to(steps, path) for steps in _pod_specs(group, kind)):
        return "PodSpec"
    return next((struct for end, struct in _IN_PODS.items() if tuple(path[-len(end) :]) == end), "")


def _pod_specs(group: str, kind: str) -> Iterator[tuple[str, ...]]:
    yield from SPECS.get((group, kind), ())
    yield from ((*steps, "spec") for steps in TEMPLATES.get((group, kind), ()))


def _leads_to(steps: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the steps are a path, which has the keys of maps and no indices of lists."""
    if [step for step in steps if step != "*"] == [*path]:
        return True
    return len(steps) == len(path) and all(step in ("*", key) for step, key in zip(steps, path, strict=True))


def fields_at(kind: str, api_version: str, path: Sequence[str]) -> Mapping[str, Field]:
    """The fields of the mapping at a path; of a pod only what is about claims."""
    struct = struct_at(kind, api_version, path)
    if not struct:
        return {} if path else _ROOT
    fields = api.fields(struct, api_version.rpartition("/")[2])
    if kind not in api.KINDS:
        return {name: field for name, field in fields.items() if name in _prose()[struct]}
    return fields if path else {**_ROOT, **fields}


def field_at(kind: str, api_version: str, path: Sequence[str]) -> Field | None:
    """The field at a path."""
    return fields_at(kind, api_version, path[:-1]).get(path[-1]) if path else None


def page(struct: str, name: str, field: Field, release: Release) -> str:
    """A field as Markdown: its type, what it means, default and limit, and which releases and gates it needs."""
    return "\n\n".join((f"**{name}**: {type_of(field)}", *_facts(struct, name, field, release)))


def _facts(struct: str, name: str, field: Field, release: Release) -> Iterator[str]:
    if said := prose(struct, name):
        yield said
    if field.values:
        yield f"One of {', '.join(f'`{value}`' for value in field.values)}."
    if field.default is not None:
        yield f"Default: `{field.default}`."
    if (most := field.limit(release if field.exists(release) else field.releases.oldest)) is not None:
        yield f"At most {most:,} {'bytes' if field.scalar and not field.container else 'entries'}."
    if field.releases != EVERY:
        yield f"In Kubernetes {field.releases}."
    if field.gates:
        yield f"Dropped from new objects unless {' and '.join(f'`{gate}`' for gate in field.gates)} is on."
    if not field.exists(release):
        yield f"**Kubernetes {release} does not have it.**"


def type_of(field: Field) -> str:
    """The type in words: string, list of DeviceRequest, map of Counter."""
    return f"{field.container} of {field.type}" if field.container else field.type


_CORE: Final = {"": "v1", "apps": "apps/v1", "batch": "batch/v1"}


def kinds_in(api_version: str, release: Release) -> tuple[str, ...]:
    """The kinds with devices or pods that a release has in a group, or in any where none is written yet."""
    of_dra = [kind for kind in api.KINDS if versions_of(kind, release)]
    of_pods = [kind for group, kind in (*SPECS, *TEMPLATES) if group in _CORE and api_version in ("", _CORE[group])]
    return (*(of_dra if not api_version or api_version.startswith(f"{GROUP}/") else ()), *of_pods)


def api_versions_of(kind: str, release: Release) -> tuple[str, ...]:
    """The values of apiVersion that a release has for a kind, or for any where none is written yet."""
    of_dra = (
        f"{GROUP}/{version}"
        for known_kind in api.KINDS
        if kind in ("", known_kind)
        for version in versions_of(known_kind, release)
    )
    of_pods = (_CORE[group] for group, name in (*SPECS, *TEMPLATES) if group in _CORE and kind in ("", name))
    return tuple(dict.fromkeys((*of_dra, *of_pods)))


def kind_page(kind: str, release: Release) -> str:
    """A DRA kind as Markdown: what it is for, and in which versions a release serves it; empty for other kinds."""
    said = _prose()["kinds"].get(kind, "")
    if not said:
        return ""
    default, versions = default_version(kind, release), versions_of(kind, release)
    others = [version for version in versions if version != default]
    served = f"`{GROUP}/{default}`" if default else "none by default"
    known = f"; has also {', '.join(f'`{version}`' for version in others)}" if others else ""
    return f"**{kind}**: {said}\n\nKubernetes {release} serves {served}{known}."


# The parameters of a driver in ``config[].opaque`` of a claim or class: kinds, fields and values of the catalogue.

STRUCT: Final = "Parameters"
"""Under which the prose of fields stands: they mean the same wherever a driver has them."""
_IN: Final = ("opaque", "parameters")
_OPAQUE: Final = re.compile(r"(?<![\w./-])\"?opaque\"? *:")
_INDENTED: Final = re.compile(r" *(?=\S)")


class Parameters(NamedTuple):
    """Where a cursor is in parameters: the ``path`` below them, of which driver; ``config`` if their kind is known."""

    driver: Driver
    config: ConfigKind | None
    path: Keys

    def choices(self) -> Mapping[str, ConfigKind]:
        """What the driver knows, by kind."""
        return {config.kind: config for config in self.driver.configs or ()}

    def below(self, path: Keys) -> Any:
        """What the catalogue has at a path: fields, the type of a value, or the possible ones; None for nothing."""
        known: Any = self.config.fields if self.config is not None else {}
        if not path:
            named = {"apiVersion": sorted({kind.api_version for kind in self.choices().values()})}
            return {**({**named, "kind": sorted(self.choices())} if "" not in self.choices() else {}), **known}
        if path == ("kind",):
            return sorted(self.choices())
        if path == ("apiVersion",):
            of = (self.config,) if self.config is not None else self.choices().values()
            return sorted({kind.api_version for kind in of})
        for key in path:
            known = known.get(key) if isinstance(known, dict) else None
            known = known["[]"] if isinstance(known, dict) and "[]" in known else known
        return known


def parameters_at(text: str, offset: int, cursor: Cursor) -> Parameters | None:
    """The parameters around a cursor, if the catalogue knows those of their driver."""
    ends = [at + 2 for at in range(len(cursor.path) - 1) if cursor.path[at : at + 2] == _IN]
    before = [*_OPAQUE.finditer(text, 0, offset)]
    if not ends or len(cursor.path) < ends[0] + cursor.on_key or not before:
        return None
    written = _block(text, before[-1].start())
    driver = catalogue().driver(_stated(written, "driver"))
    if driver is None or not driver.configs:
        return None
    kinds = {config.kind: config for config in driver.configs}
    return Parameters(driver, kinds.get(_stated(written, "kind")) or kinds.get(""), cursor.path[ends[0] :])


def _block(text: str, start: int) -> str:
    """A key of a mapping with what stands below it."""
    column = start - text.rfind("\n", 0, start) - 1
    first, *lines = text[start:].split("\n")
    kept = [first]
    for line in lines:
        indent = _INDENTED.match(line)
        if indent is not None and indent.end() <= column:
            break
        kept.append(line)
    return "\n".join(kept)


def _stated(written: str, name: str) -> str:
    """The value of the key in a block that is as far left as any of that name."""
    found = re.findall(rf"^(.*?)(?<![\w./-])\"?{name}\"? *: *[\"']?([\w./-]+)", written, re.MULTILINE)
    return str(min(found, key=lambda entry: len(entry[0]))[1]) if found else ""


def values_of(known: Any) -> Iterator[str]:
    """The values that are possible where the catalogue has this."""
    if known == "bool":
        yield from ("true", "false")
    elif isinstance(known, list):
        yield from map(str, known)


def parameter_type(known: Any) -> str:
    """What a field holds."""
    if isinstance(known, dict):
        return "list" if "[]" in known else "fields"
    return "string" if isinstance(known, list) else str(known)


def parameter_page(at: Parameters, path: Keys) -> str:
    """A field of parameters as Markdown, empty for one that the driver does not have."""
    known = at.below(path)
    if known is None or not path:
        return ""
    of = at.config.kind if at.config is not None and at.config.kind else "the parameters"
    facts = [f"**{path[-1]}** of {of}, for {at.driver.title}: {parameter_type(known)}", prose(STRUCT, path[-1])]
    if isinstance(known, list):
        facts.append(f"One of {', '.join(f'`{value}`' for value in known)}.")
    elif isinstance(known, dict):
        facts.append(f"It has {', '.join(f'`{name}`' for name in known.get('[]', known))}.")
    return "\n\n".join(filter(None, facts))
