"""A virtual machine of which KubeVirt cannot make the pod: the API server's reason, what to do, and what to look at.

JSON and YAML have the shape of ``schemas/explain.json``.
"""

from __future__ import annotations

from typing import Any

from kubectl_dra.command import ClusterFlags, CommandLine, misnamed
from kubectl_dra.explain.pending_alike import remedy, without_pod
from kubectl_dra.neighbours.no_pod import UnmadeLauncher
from kubectl_dra.report.blocks import Answer, Block, Items, Section, Tone, prose, shell
from kubectl_dra.report.blocks_text import write_blocks
from kubectl_dra.report.color import Painter
from kubectl_dra.report.json_shapes import SCHEMA_VERSION, object_json
from kubectl_dra.report.phrases import written
from kubectl_dra.report.remedy_json import commands_json
from kubectl_dra.report.table import EMPTY


def write_unmade(launcher: UnmadeLauncher, where: ClusterFlags, color: str = "auto") -> None:
    """Write the answer, what to do, and what to look at."""
    fix = Section("Fix", (Items(((prose(written(remedy(launcher)), hang=0),),)),))
    blocks: list[Block] = [Answer(_answer(launcher), "", Tone.BAD), fix, shell((_next(launcher),), where, "Next")]
    write_blocks(Painter(None, color), blocks)


def unmade_json(launcher: UnmadeLauncher, where: ClusterFlags) -> dict[str, Any]:
    """A VirtualMachineAnswer."""
    return {"schemaVersion": SCHEMA_VERSION, "kind": "VirtualMachineAnswer", **without_pod_json(launcher, where)}


def without_pod_json(launcher: UnmadeLauncher, where: ClusterFlags) -> dict[str, Any]:
    """The same as an entry of a list."""
    (following,) = commands_json(_next(launcher), where=where)
    return {
        "subject": object_json(launcher.namespace, launcher.name, "VirtualMachineInstance"),
        "answer": f"{_answer(launcher)}.",
        "fix": {"text": written(remedy(launcher))},
        "next": following,
    }


def cells_of(launcher: UnmadeLauncher) -> tuple[str, ...]:
    """Its row in the list of what is pending."""
    return launcher.namespace, f"vmi/{launcher.name}", "no-pod", EMPTY, written(without_pod(launcher))


def _answer(launcher: UnmadeLauncher) -> str:
    return written(without_pod(launcher)).removesuffix(".")


def _next(launcher: UnmadeLauncher) -> CommandLine:
    words = ("kubectl", "get", f"vmi/{launcher.name}", "-n", launcher.namespace, "-o", "yaml")
    return CommandLine(words, misnamed=misnamed((launcher.name, launcher.namespace)))
