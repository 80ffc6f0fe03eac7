from __future__ import annotations

from tests.packaging.fixtures import offline, tools, wheel, wheelhouse  # noqa: F401
