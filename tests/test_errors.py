"""The errors that users see."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import kubectl_dra
from kubectl_dra.errors import InputError, UsageError, about


def _below(kind: type[InputError | UsageError]) -> Iterator[type[InputError | UsageError]]:
    yield kind
    for other in kind.__subclasses__():
        yield from _below(other)


def _every() -> list[type[InputError | UsageError]]:
    """The classes of all modules that may define one."""
    for module in pkgutil.walk_packages(kubectl_dra.__path__, "kubectl_dra."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return sorted({*_below(InputError), *_below(UsageError)}, key=lambda kind: (kind.__module__, kind.__name__))


@pytest.mark.parametrize("kind", _every(), ids=lambda kind: kind.__name__)
def test_what_an_error_is_about_is_said_of_any_class(kind: type[InputError | UsageError]) -> None:
    """However it is made: some have further arguments."""
    own = inspect.signature(kind).parameters.values() if inspect.isfunction(kind.__init__) else ()
    required = [
        parameter.name
        for parameter in own
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
    ]
    error = kind(*(required or ["message"]))
    error.more = ("a line",)
    whole = about("--flag", error)
    assert str(whole) == f"--flag: {error}"
    assert isinstance(whole, UsageError) == isinstance(error, UsageError)
    assert (whole.more, whole.commands) == (error.more, error.commands)
