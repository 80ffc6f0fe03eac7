"""What can be typed after ``kubectl dra version``."""

from __future__ import annotations

from typing import Annotated

import typer
from msgspec import Struct

from kubectl_dra.cli import options as opt


class VersionFlags(Struct, frozen=True):
    """What is typed after ``version``."""

    client: Annotated[bool, typer.Option("--client", help="Do not ask the server.")] = False
    output: opt.OutputOption = opt.Output.text
    color: opt.ColorOption = opt.Color.auto
