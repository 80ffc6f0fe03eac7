"""Runs what is asynchronous in a test."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def ran(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its result. It gets a thread of its own: a browser of other tests keeps an event loop running in the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
