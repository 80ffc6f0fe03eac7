"""What the tests of the engine share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubectl_dra.cel import Environment, compile_expression
from kubectl_dra.cel.checker import Checked, check
from kubectl_dra.cel.parser import parse
from kubectl_dra.cel.program import Program

ENVIRONMENT = Environment.for_release("1.36")
WITH_LISTS = Environment.for_release("1.36", {"DRAConsumableCapacity", "DRAListTypeAttributes"})

A = 'device.attributes["dra.example.com"]'
C = 'device.capacity["dra.example.com"]'


@dataclass(frozen=True, slots=True)
class Device:
    """A device as the engine reads it, by default with one attribute of each kind."""

    driver: str = "dra.example.com"
    attributes: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "model": {"string": "a100"},
            "index": {"int": 3},
            "healthy": {"bool": True},
            "fw": {"version": "1.10.0"},
            "fwb": {"version": "1.10.0+build.1"},
            "other.example.com/numa": {"int": 0},
        }
    )
    capacity: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: {
            "memory": {"value": "40Gi"},
            "cores": {"value": "8"},
            "half": {"value": "1500m"},
            "big": {"value": "1.5Ti"},
        }
    )
    allow_multiple_allocations: bool = False


DEVICE = Device()


def compiled(text: str, environment: Environment = ENVIRONMENT) -> Program:
    """Compile, with ``A.`` and ``C.`` at the start of a word short for the usual maps."""
    return compile_expression(environment, expanded(text))


def expanded(text: str) -> str:
    return text.replace("A.", A + ".").replace("C.", C + ".").replace("A[", A + "[").replace("C[", C + "[")


def checked(text: str, environment: Environment = ENVIRONMENT) -> Checked:
    return check(parse(expanded(text), environment.macros()).expression, environment)
