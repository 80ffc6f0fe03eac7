import os

from tests.browser import browser as browser
from tests.browser import chromium as chromium
from tests.controlplane.fixtures import pytest_terminal_summary  # noqa: F401

# Parallel test workers are told a width of their own; what a command prints into a pipe must not depend on it.
os.environ.pop("COLUMNS", None)
os.environ.pop("LINES", None)
