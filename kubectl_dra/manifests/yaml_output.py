"""Objects as YAML that kubectl, and every reader of YAML 1.1 or 1.2, reads back as they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from kubectl_dra.manifests.values import scalar
from kubectl_dra.safe_output import is_hidden


def write_yaml(value: Mapping[str, Any], stream: TextIO, *, width: int = 80) -> None:
    """Write an object. PyYAML alone would leave ``y`` and ``1e3`` without quotes, which kubectl takes for no text.

    Text that holds hidden characters is quoted, so that they can be written as escapes.
    """
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        pass

    def text(dumper: Any, value: str) -> Any:
        tag = "tag:yaml.org,2002:str"
        if is_hidden(value):
            readable = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            return dumper.represent_scalar(tag, readable, style='"')
        return dumper.represent_scalar(tag, value, style=None if isinstance(scalar(value), str) else "'")

    Dumper.add_representer(str, text)
    yaml.dump(dict(value), stream, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=width)


def yaml_text(value: Mapping[str, Any], *, width: int = 80) -> str:
    """The same as a text."""
    from io import StringIO

    stream = StringIO()
    write_yaml(value, stream, width=width)
    return stream.getvalue()
