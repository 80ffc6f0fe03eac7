"""Whether a terminal shows hyperlinks (OSC 8): others may print what they do not understand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

_PROGRAMS: Final = frozenset(("Hyper", "Tabby", "WezTerm", "ghostty", "iTerm.app", "mintty", "rio", "vscode"))
"""What TERM_PROGRAM says in them."""
_TERMINALS: Final = ("alacritty", "contour", "foot", "xterm-ghostty", "xterm-kitty")
"""How TERM begins in them."""
_VARIABLES: Final = ("DOMTERM", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "WT_SESSION")
"""Set by nobody else."""
_MULTIPLEXERS: Final = ("screen", "tmux")
_VTE: Final = 5000
"""VTE 0.50, the first with links. Terminals of GNOME, Xfce, MATE and others are made of it."""


def shows_links(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether links may be written; FORCE_HYPERLINK decides about a terminal that is not known (0: none)."""
    if not stream.isatty():
        return False
    forced = environment.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    term = environment.get("TERM", "")
    # A multiplexer passes links on only where it is set up for it, and its variables tell of the terminal around it.
    if term == "dumb" or term.startswith(_MULTIPLEXERS) or environment.get("TMUX") or environment.get("STY"):
        return False
    vte = environment.get("VTE_VERSION", "")
    return (
        environment.get("TERM_PROGRAM") in _PROGRAMS
        or term.startswith(_TERMINALS)
        or any(environment.get(name) for name in _VARIABLES)
        or (vte.isdecimal() and int(vte) >= _VTE)
    )
