"""Links on terminals: only where they are shown, and where colour is."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from unittest import mock

import pytest

from kubectl_dra.report.color import Painter, linked, shows_links

URL = "https://example.com/page"
START = f";{URL}\x1b\\"


class Screen(io.StringIO):
    """A terminal, as far as anybody asks."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4602"}, False),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "alacritty"}, True),
        ({"WT_SESSION": "1"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({}, False),
        ({"TERM": "dumb", "VTE_VERSION": "7200"}, False),
        ({"TERM": "tmux-256color", "VTE_VERSION": "7200"}, False),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200", "TMUX": "/tmp/t"}, False),
        ({"TERM": "tmux-256color", "FORCE_HYPERLINK": "1"}, True),
        ({"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, False),
    ],
)
def test_which_terminals_show_links(environment: Mapping[str, str], shown: bool) -> None:
    assert shows_links(Screen(), environment) is shown
    assert not shows_links(io.StringIO(), environment)


def written(stream: io.StringIO, color: str, **environment: str) -> str:
    """What a linked word becomes."""
    with mock.patch.dict(os.environ, environment, clear=True):
        Painter(stream, color).write("see ", ("code", linked("cyan", URL)))
    return stream.getvalue()


def test_a_link_needs_a_terminal_and_colour() -> None:
    kitty = {"TERM": "xterm-kitty"}
    assert START in written(Screen(), "auto", **kitty)
    assert written(Screen(), "never", **kitty) == "see code\n"
    assert written(Screen(), "auto", NO_COLOR="1", **kitty) == "see code\n"
    assert written(io.StringIO(), "auto", **kitty) == "see code\n"
    assert written(io.StringIO(), "always", **kitty) == "see \x1b[36mcode\x1b[0m\n"
    assert written(Screen(), "auto", TERM="xterm") == "see \x1b[36mcode\x1b[0m\n"
