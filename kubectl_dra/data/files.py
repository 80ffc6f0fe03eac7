"""The vendors' files, split into documents that are parsed on demand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path as File
from typing import Any, Final

FOLDER: Final = File(__file__).with_name("vendors")
_DRIVER: Final = re.compile(r"^driver: (\S+)$", re.MULTILINE)
_DOMAINS: Final = re.compile(r"^domains:\s*\[([^\]]*)\]", re.MULTILINE)
_EVERYONE: Final = re.compile(r"^everyone: true", re.MULTILINE)


class VendorFile:
    """A vendor's file: ``text`` is its first document, ``drivers`` are the others by driver name."""

    def __init__(self, id: str, content: str) -> None:
        self.id = id
        self.text, *others = content.split("\n---\n")
        self.drivers: Mapping[str, str] = {_DRIVER.findall(text)[0]: text for text in others}

    @cached_property
    def domains(self) -> tuple[str, ...]:
        """The domains of the vendor's resource names, or ``*`` for any."""
        match = _DOMAINS.search(self.text)
        return tuple(part.strip(" \n\"'") for part in match[1].split(",") if part.strip()) if match else ()

    @cached_property
    def everyone(self) -> bool:
        """Whether its labels apply to pods of all vendors."""
        return _EVERYONE.search(self.text) is not None

    @cached_property
    def raw(self) -> Mapping[str, Any]:
        """The first document."""
        found: Mapping[str, Any] = parsed(self.text)
        return found


@cache
def vendor_files() -> Mapping[str, VendorFile]:
    """The files of this package by vendor id, which is the file's name."""
    return {file.stem: VendorFile(file.stem, file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.yaml"))}


def parsed(text: str) -> Any:
    """The value of a YAML text."""
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
