"""The parameters of a driver in ``config[].opaque`` of a claim or class: kinds, fields and values of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kubectl_dra.data.drivers import ConfigKind, Driver, catalogue
from kubectl_dra.lsp.cursor import Cursor, Keys
from kubectl_dra.lsp.fields import prose

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


def type_of(known: Any) -> str:
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
    facts = [f"**{path[-1]}** of {of}, for {at.driver.title}: {type_of(known)}", prose(STRUCT, path[-1])]
    if isinstance(known, list):
        facts.append(f"One of {', '.join(f'`{value}`' for value in known)}.")
    elif isinstance(known, dict):
        facts.append(f"It has {', '.join(f'`{name}`' for name in known.get('[]', known))}.")
    return "\n\n".join(filter(None, facts))
