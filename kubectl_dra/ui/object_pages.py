"""Pages over the tables that show an object as it is written, and commands to copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml
from rich.text import Text

from kubectl_dra.api.slices import DeviceID
from kubectl_dra.command import CommandLine
from kubectl_dra.console import one_line
from kubectl_dra.errors import DraError
from kubectl_dra.ui import keys
from kubectl_dra.ui.pages import ScreenPage
from kubectl_dra.ui.tables import Asked, ClusterView, Subject
from kubectl_dra.usage.choices import UseBy


def described(subject: Subject, view: ClusterView) -> tuple[str, str, str]:
    """The kind, name and namespace of the object that a row is about; a device is in its slice. Empty for others."""
    if isinstance(subject, Asked):
        return "Pod" if subject.kind == "pod" else "ResourceClaim", subject.name, subject.namespace
    if isinstance(subject, DeviceID):
        row = view.device(subject)
        return ("ResourceSlice", row.slice.name, "") if row is not None else ("", "", "")
    kinds = {UseBy.nodes: "Node", UseBy.classes: "DeviceClass"}
    return kinds.get(subject.by, ""), subject.first, ""


class ObjectPage(ScreenPage):
    """An object as YAML, without what only servers write for themselves."""

    def __init__(self, kind: str, name: str, namespace: str) -> None:
        super().__init__(f"{kind} {f'{namespace}/' if namespace else ''}{name}")
        self._wanted = (kind, name, namespace)
        self._lines = ""

    def on_mount(self) -> None:
        """Read it."""
        super().on_mount()
        self.remark("reading ...")
        screens = self.screens

        def job() -> None:
            try:
                raw, said = screens.source.described(*self._wanted), ""
            except DraError as error:
                raw, said = None, str(error)
            screens.tell(lambda: self._read(raw, said))

        screens.worker.do(job)

    def _read(self, raw: Any, said: str) -> None:
        if not self.is_attached:
            return
        self.remark(said or ("" if raw is not None else "There is no such object any more."))
        if raw is not None:
            metadata = {key: value for key, value in raw.get("metadata", {}).items() if key != "managedFields"}
            text = yaml.safe_dump({**raw, "metadata": metadata}, sort_keys=False, allow_unicode=True)
            self._lines = "\n".join(map(one_line, text.splitlines()))
            self.draw()

    def text(self, columns: int) -> Text:
        """The object."""
        return Text(self._lines)


class CommandsPage(ScreenPage):
    """Commands to copy."""

    KEYS = keys.ROW[-1:]

    def __init__(self, title: str, commands: Sequence[CommandLine]) -> None:
        super().__init__(title)
        self.commands = tuple(commands)

    def text(self, columns: int) -> Text:
        """A line for each."""
        return Text("\n".join(one_line(str(command)) for command in self.commands))
