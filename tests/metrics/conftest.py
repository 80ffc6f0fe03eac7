from tests.cli.conftest import dra as dra
