"""A virtual machine of which no pod could be made, as text."""

from __future__ import annotations

from kubectl_dra.command import CommandLine, misnamed
from kubectl_dra.explain.virtual_machines import remedy, without_pod
from kubectl_dra.neighbours.kubevirt import UnmadeLauncher
from kubectl_dra.report.blocks import Answer, Items, Section, Tone, prose, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.phrases import written


def write_unmade(launcher: UnmadeLauncher, color: str = "auto") -> None:
    """Write the answer, what to do, and what to look at."""
    from kubectl_dra.command import CURRENT

    out = Painter(None, color)
    fix = Section("Fix", (Items(((prose(written(remedy(launcher)), hang=0),),)),))
    names = (launcher.name, launcher.namespace)
    words = ("kubectl", "get", f"vmi/{launcher.name}", "-n", launcher.namespace, "-o", "yaml")
    following = shell((CommandLine(words, misnamed=misnamed(names)),), CURRENT, "Next")
    write_blocks(out, [Answer(written(without_pod(launcher)).removesuffix("."), "", Tone.BAD), fix, following])
