"""The fields of DRA kinds as an editor shows them, from the one table of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubectl_dra.api.fields import KINDS, Field, fields
from kubectl_dra.api.releases import EVERY, Release


def struct_at(kind: str, version: str, path: Sequence[str]) -> Mapping[str, Field]:
    """The fields of the mapping at a path of a DRA kind; none for what the table does not know."""
    found = _found(kind, version, path)
    return found if isinstance(found, Mapping) else {}


def field_at(kind: str, version: str, path: Sequence[str]) -> Field | None:
    """The field at a path of a DRA kind."""
    if not path:
        return None
    return struct_at(kind, version, path[:-1]).get(path[-1])


def _found(kind: str, version: str, path: Sequence[str]) -> Mapping[str, Field] | Field | None:
    if kind not in KINDS:
        return None
    found: Mapping[str, Field] | Field | None = fields(kind, version)
    for part in path:
        if isinstance(found, Field):
            # The key of a map, whose values have the field's type.
            found = _below(found, version)
        elif isinstance(found, Mapping):
            field = found.get(part)
            if field is None:
                return None
            found = field if field.container == "map" else _below(field, version)
        else:
            return None
    return found


def _below(field: Field, version: str) -> Mapping[str, Field] | None:
    return None if field.scalar else fields(field.type, version)


def page(name: str, field: Field, release: Release) -> str:
    """A field as Markdown: its type, default and limit, and which releases and feature gates it needs."""
    lines = [f"**{name}**: {type_of(field)}"]
    if field.default is not None:
        lines.append(f"Default: `{field.default}`.")
    if (most := field.limit(release)) is not None:
        lines.append(f"At most {most:,} {'bytes' if field.scalar and not field.container else 'entries'}.")
    if field.releases != EVERY:
        lines.append(f"In Kubernetes {field.releases}.")
    if field.gates:
        lines.append(f"Dropped from new objects unless {' and '.join(f'`{gate}`' for gate in field.gates)} is on.")
    if not field.exists(release):
        lines.append(f"**Kubernetes {release} does not have it.**")
    return "\n\n".join(lines)


def type_of(field: Field) -> str:
    """The type in words: string, list of DeviceRequest, map of Counter."""
    return f"{field.container} of {field.type}" if field.container else field.type
