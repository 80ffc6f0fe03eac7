"""A result for machines, as JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TextIO

SCHEMA_VERSION: Final = "5"
"""Of all reports: it rises for all of them at once (``docs/json-changes.md``)."""


def filled(**fields: Any) -> dict[str, Any]:
    """The fields that are not empty: the others are left out. Numbers and booleans are never empty."""
    return {name: value for name, value in fields.items() if value not in ("", None, [], (), {})}


def write(report: Mapping[str, Any], output: str, stream: TextIO, exit_code: int) -> None:
    """Write a report as ``json`` or ``yaml``, with the exit code of the command, which a pipe swallows."""
    result = with_exit_code(report, exit_code)
    if output == "json":
        stream.write(json_text(result))
        return
    from kubectl_dra.manifests.yaml_output import write_yaml

    write_yaml(result, stream, width=110)


def with_exit_code(report: Mapping[str, Any], exit_code: int) -> dict[str, Any]:
    """A report with the exit code after its version and kind."""
    head = {"schemaVersion": report["schemaVersion"], "kind": report["kind"], "exitCode": exit_code}
    return {**head, **{key: value for key, value in report.items() if key not in head}}


def json_text(result: Mapping[str, Any]) -> str:
    """The result as indented JSON, ending in a newline. Much faster than the standard library on large results."""
    from msgspec import json

    try:
        return json.format(json.encode(result), indent=2).decode() + "\n"
    except (OverflowError, TypeError, UnicodeError):
        # Whole numbers beyond 64 bits, and what no text can hold.
        from json import dumps

        return dumps(result, indent=2, ensure_ascii=False) + "\n"
