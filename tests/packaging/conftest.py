from __future__ import annotations

import sys

from tests.packaging.fixtures import offline, program, standalone, tools, wheel, wheelhouse  # noqa: F401
from tests.packaging.toolbox import ROOT

# The programs under packaging/ are scripts beside each other, not a package.
sys.path.append(str(ROOT / "packaging"))
