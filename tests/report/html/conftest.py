from tests.browser import browser as browser
from tests.browser import chromium as chromium
from tests.cli.conftest import dra as dra
