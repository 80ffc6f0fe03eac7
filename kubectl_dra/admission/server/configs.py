"""Opaque driver parameters, in classes and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.model import INVALID, TOO_LONG, Path, Violations, missing, text, violation
from kubectl_dra.admission.server.names import check_driver
from kubectl_dra.admission.server.scalars import type_name
from kubectl_dra.api.fields import limit

_DRIVER: Final = ("config-driver-missing", "config-driver-invalid", "config-driver-long")
# As Go's encoder, which kubectl sends with, writes these characters.
_ESCAPED: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def check_config(config: Mapping[str, Any] | None, at: Path, context: ServerContext) -> Violations:
    """The ``opaque`` part of an entry of ``config``."""
    opaque = (config or {}).get("opaque")
    at = (*at, "opaque")
    if opaque is None:
        yield missing(at, "config-opaque-missing")
        return
    yield from check_driver(text(opaque, "driver"), (*at, "driver"), _DRIVER, release=context.release)
    yield from _check_parameters(opaque.get("parameters"), (*at, "parameters"))


def _check_parameters(parameters: Any, at: Path) -> Violations:
    if parameters is None:
        yield missing(at, "config-parameters-missing")
    else:
        yield from check_object(parameters, at, "config-parameters")


def check_object(parameters: Any, at: Path, rule: str) -> Violations:
    """Raw JSON that must be an object; ``rule`` is the beginning of its rules' names."""
    length, most = sent_size(parameters), limit("OpaqueDeviceConfiguration", "parameters")
    if most is not None and length > most:
        message = f"has {length} bytes as JSON, at most {most} are allowed"
        yield violation(at, TOO_LONG, f"{rule}-long", message)
    elif not isinstance(parameters, dict):
        message = f"must be an object, not {type_name(parameters)}"
        yield violation(at, INVALID, f"{rule}-not-object", message)


def sent_size(value: Any) -> int:
    """The bytes of a value as kubectl sends it: JSON without blanks, with some characters escaped."""
    from json import dumps

    written = dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPED)
    return len(written.encode("utf-8", "surrogatepass"))
