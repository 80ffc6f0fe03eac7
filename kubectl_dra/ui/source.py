"""Where the screen gets what it shows, and what it may do there; the command line gives it a cluster, live or saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TextIO

from kubectl_dra.api.pods import Pod
from kubectl_dra.api.slices import DeviceID
from kubectl_dra.cluster.snapshot import Progress, Snapshot
from kubectl_dra.errors import DraError
from kubectl_dra.explain.scene.prepare import Settings

Ask = Callable[[str], bool]
"""Asks a person whether to go on."""


class Tainting(NamedTuple):
    """A taint of one device to add, as a person types it (KEY[=VALUE]:EFFECT); without one, our rules to remove."""

    device: DeviceID
    taint: str = ""
    reason: str = ""


class ScreenSource(Protocol):
    """A cluster, live or saved."""

    @property
    def live(self) -> bool:
        """Whether the cluster changes and can be changed; saved objects are only read."""

    @property
    def place(self) -> str:
        """Which cluster this is, in a few words."""

    @property
    def where(self) -> str:
        """The flags that choose the cluster, each after a blank, for commands to repeat."""

    def read(self, progress: Progress) -> tuple[Snapshot, Settings, str]:
        """The cluster, what is assumed of it, and the namespace to show (empty for all). Raises DraError."""

    def completed(self, snapshot: Snapshot, pods: Iterable[Pod], *, everything: bool) -> Snapshot:
        """The snapshot with the further kinds that affect these pods, or ``everything`` pending. Raises DraError."""

    def passes(self, error: DraError) -> bool:
        """Whether a cluster that answered before may answer again after this error."""

    def follow(self, changed: Callable[[], None]) -> None:
        """Watch the cluster: ``changed`` is called, in another thread, when anything may have changed."""

    def followed(self) -> bool:
        """Whether every change is reported now; else the cluster has to be asked now and then."""

    def close(self) -> None:
        """Stop watching."""

    def taint(self, wanted: Tainting, out: TextIO, ask: Ask, *, only_say: bool) -> int:
        """Taint or untaint as the commands of that name do, writing to ``out`` what they say.

        ``only_say``: write nothing, only say what would happen. Returns the command's exit code.

        Raises:
            DraError: what the command ends with, such as a rule that may not be written.
        """
