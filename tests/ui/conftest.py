from __future__ import annotations

import inspect

import pytest

from tests.cli.conftest import dra as dra
from tools.event_loop import ran


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is played before a screen."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    ran(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}))
    return True
