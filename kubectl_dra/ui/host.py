"""What a page over the tables needs of the application."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kubectl_dra.ui.desk import Desk
from kubectl_dra.ui.source import ScreenSource
from kubectl_dra.ui.tables import Picture


class ScreenHost(Protocol):
    """The application; ``picture`` is the newest one of the cluster, ``tell`` has something done in its thread."""

    source: ScreenSource
    desk: Desk
    picture: Picture | None

    def tell(self, do: Callable[[], None]) -> None:
        """Have something done in the screen's own thread."""
