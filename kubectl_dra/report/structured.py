"""A result for machines, as JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from kubectl_dra.safe_output import is_hidden

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Gap


def write(report: Mapping[str, Any], output: str, stream: TextIO, exit_code: int) -> None:
    """Write a report as ``json`` or ``yaml``, with the exit code of the command, which a pipe swallows."""
    result = with_exit_code(report, exit_code)
    if output == "json":
        stream.write(json_text(result))
        return
    stream.write(yaml_text(result))


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


def yaml_text(result: Mapping[str, Any]) -> str:
    """The result as YAML. Text that holds hidden characters is quoted, so that they can be written as escapes."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        if not is_hidden(value):
            return dumper.represent_str(value)
        readable = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return dumper.represent_scalar("tag:yaml.org,2002:str", readable, style='"')

    Dumper.add_representer(str, text)
    return yaml.dump(dict(result), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def gap_json(gap: Gap) -> dict[str, Any]:
    """A kind that was not read whole: why, and the permission that is missing."""
    out: dict[str, Any] = {"kind": gap.kind, "reason": gap.reason}
    more = (("namespace", gap.namespace), ("readNamespace", gap.read_in), ("detail", gap.detail))
    out.update({name: value for name, value in more if value})
    if gap.permission is not None:
        out["permission"] = gap.permission._asdict()
    return out
