"""Every pending claim as a table: who waits, and the first cause of each; and as JSON (``schemas/explain.json``)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, Final

from kubectl_dra.command import Argv, ClusterFlags, CommandLine, kubectl, misnamed
from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.next_step import to_see_more
from kubectl_dra.explain.overview import Alike, Overview
from kubectl_dra.explain.pending_alike import remedy, without_pod
from kubectl_dra.neighbours.no_pod import UnmadeLauncher
from kubectl_dra.report.blocks import Answer, Block, Items, Section, Tone, noted, prose, shell
from kubectl_dra.report.blocks_text import LINES, write_blocks, write_command
from kubectl_dra.report.color import Painter
from kubectl_dra.report.explain_commands import Invocation, command
from kubectl_dra.report.explain_json import items_json
from kubectl_dra.report.explain_words import is_stuck, overview_answer, reason
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.json_shapes import object_json
from kubectl_dra.report.phrases import commands_of, sentences, written
from kubectl_dra.report.remedy_json import command_json, notes_json, unread_json
from kubectl_dra.report.table import EMPTY, aligned, fitted
from kubectl_dra.text import some

HEADER = ("NAMESPACE", "NAME", "VERDICT", "CAUSE", "REASON")
BELOW = ("REASON", "CAUSE")
"""What goes below a row that is too long, first to go first."""
CAUSES: Final = 5
"""Number of causes that are counted, the most frequent ones."""
FEWEST: Final = 3
"""Lines of the table, whatever stands above it."""
SHORT: Final = ("NAMESPACE", "NAME", "VERDICT", "CAUSE")
"""What fits on one line."""


def write_overview(
    overview: Overview,
    color: str = "auto",
    flags: Argv = (),
    *,
    where: ClusterFlags,
    short: bool = False,
    full: bool = False,
    headers: bool = True,
) -> None:
    """Write the answer, the causes if there are many rows, the table, stuck ones first, and the next command.

    It repeats ``flags``. Without ``headers`` there are only the rows. ``short``: in fifteen lines, with codes for
    reasons and the last rows left out if necessary; ``full``: each that waits has a row of its own.
    """
    out = Painter(color=color, bare=not headers)
    if not overview.found and not headers:
        _, *blocks = fitted([HEADER, *map(cells_of, overview.unmade)], out.limit, BELOW, prose=True)
        for line in chain.from_iterable(blocks):
            out.write(line)
        return
    if not overview.found:
        out.paragraph(overview_answer(overview))
        _notes(out, overview, where)
        if overview.unmade:
            first = overview.unmade[0]
            out.paragraph(written(remedy(first)))
            ask = kubectl("dra", "explain", kind="vmi", name=first.name, namespace=first.namespace, more=flags)
            write_blocks(out, [shell((ask,), where, "Next")])
        elif overview.elsewhere:
            write_blocks(out, [shell((kubectl("dra", "explain", "-A", *flags),), where, "Next")])
        elif more := command(to_see_more(overview.unread), Invocation()):
            write_blocks(out, [shell((more,), where, "Next")])
        return
    ranked = sorted(overview.found, key=lambda alike: (-alike.exit_code, -len(alike.names)))
    rows = list(map(cells, ranked))
    if full:
        rows = [(row[0], name, *row[2:]) for alike, row in zip(ranked, rows, strict=True) for name in alike.names]
    header, *blocks = fitted([HEADER, *rows], out.limit, BELOW, prose=True)
    room = LINES - 6 - (len(overview.notes) + 3 if overview.notes else 0)
    long = sum(map(len, blocks)) > room
    causes = _by_cause(ranked) if long and headers else []
    if short and headers and long:
        header, *blocks = _shortened(ranked, out.limit, max(room - len(causes) - 1, FEWEST))
    if headers:
        out.write((overview_answer(overview).removesuffix("."), "bold"))
        for line in ("", *aligned(causes), "") if causes else ("",):
            out.write(line)
        out.write((header[0], "bold"))
    for block in blocks:
        for line in block:
            out.write(line)
    if not headers:
        return
    if len(blocks) < len(ranked):
        scope = ("-n", overview.namespace) if overview.namespace else ()
        whole = where.asks(CommandLine(("kubectl", "dra", "explain", *scope, "--full", *flags)))
        out.write(f"and {len(ranked) - len(blocks):,} more: {whole}")
    _notes(out, overview, where)
    kind, _, name = ranked[0].names[0].rpartition("/")
    space = ranked[0].diagnosis.namespace
    following = kubectl("dra", "explain", kind=kind or "pod", name=name, namespace=space, more=flags)
    out.write("")
    write_command(out, shell((following,), where, "Next"))


def _by_cause(ranked: Sequence[Alike]) -> list[tuple[str, ...]]:
    """Number that wait for each cause, and their namespaces; none where all wait for one."""
    counts: dict[str, int] = {}
    spaces: dict[str, dict[str, None]] = {}
    for alike in ranked:
        cause = cells(alike)[3]
        counts[cause] = counts.get(cause, 0) + len(alike.names)
        spaces.setdefault(cause, {})[alike.diagnosis.namespace] = None
    if len(counts) < 2:
        return []
    rows = sorted(counts.items(), key=lambda item: -item[1])
    table = [(cause, f"{count:,}", some(list(spaces[cause]), 2)) for cause, count in rows[:CAUSES]]
    if len(rows) > CAUSES:
        rest = sum(count for _, count in rows[CAUSES:])
        table.append((f"{len(rows) - CAUSES:,} other causes", f"{rest:,}", ""))
    return [("CAUSE", "COUNT", "NAMESPACES"), *table]


def _shortened(ranked: Sequence[Alike], limit: int | None, room: int) -> list[list[str]]:
    """The header, and as many rows as there is room for, with codes of causes for reasons."""
    rows = [
        SHORT,
        *((namespace, waiting, verdict, cause) for namespace, waiting, verdict, cause, _ in map(cells, ranked)),
    ]
    header, *blocks = fitted(rows, limit, BELOW[1:])
    if sum(map(len, blocks)) > room:
        filled = accumulate(map(len, blocks))
        blocks = blocks[: sum(lines < room for lines in filled)]
    return [header, *blocks]


def _notes(out: Painter, overview: Overview, where: ClusterFlags) -> None:
    # The answer has said the first.
    said = overview.notes if overview.found else overview.notes[1 if overview.unread or overview.unmade else 0 :]
    if said:
        write_blocks(out, [noted(sentences(said), commands_of(said), where)])


def cells(alike: Alike) -> tuple[str, ...]:
    """The cells of ``HEADER``."""
    diagnosis = alike.diagnosis
    first = diagnosis.findings[0] if diagnosis.findings else None
    cause = first.kind.code if first else "-"
    why = written(first.summary) if first and not diagnosis.unclear else reason(diagnosis)
    verdict = diagnosis.verdict.word
    if diagnosis.verdict is Verdict.UNSCHEDULABLE and not is_stuck(diagnosis):
        verdict = f"{verdict} yet"
    elif diagnosis.verdict is not Verdict.UNSCHEDULABLE and is_stuck(diagnosis):
        verdict = f"{verdict}, stuck"
    if alike.served is not None:
        verdict = f"{'' if alike.served.always else 'at least '}{alike.served.fewest:,} of {alike.served.pods:,} fit"
        why = f"{why}; the others want the same devices"
    return diagnosis.namespace, some(alike.names, 1), verdict, cause, why


def overview_json(overview: Overview, invocation: Invocation) -> dict[str, Any]:
    """Every pending claim: a DiagnosisList, each item with the pods and claims that it represents."""
    found = zip(overview.found, items_json([alike.diagnosis for alike in overview.found], invocation), strict=True)
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "DiagnosisList",
        "answer": overview_answer(overview),
        **notes_json(overview.notes, invocation.where),
        "unread": unread_json(overview.unread),
        "items": [
            {**item, "standsFor": list(alike.names), **filled(served=alike.served and alike.served.fewest)}
            for alike, item in found
        ],
        **filled(withoutPod=[_unmade_json(launcher, invocation.where) for launcher in overview.unmade]),
    }


# A virtual machine of which KubeVirt cannot make the pod: the API server's reason, what to do, and what to look at.


def write_unmade(launcher: UnmadeLauncher, where: ClusterFlags, color: str = "auto") -> None:
    """Write the answer, what to do, and what to look at."""
    fix = Section("Fix", (Items(((prose(written(remedy(launcher)), hang=0),),)),))
    blocks: list[Block] = [Answer(_answer(launcher), "", Tone.BAD), fix, shell((_next(launcher),), where, "Next")]
    write_blocks(Painter(None, color), blocks)


def unmade_json(launcher: UnmadeLauncher, where: ClusterFlags) -> dict[str, Any]:
    """A VirtualMachineAnswer."""
    return {"schemaVersion": SCHEMA_VERSION, "kind": "VirtualMachineAnswer", **_unmade_json(launcher, where)}


def _unmade_json(launcher: UnmadeLauncher, where: ClusterFlags) -> dict[str, Any]:
    """The same as an entry of a list."""
    return {
        "subject": object_json(launcher.namespace, launcher.name, "VirtualMachineInstance"),
        "answer": f"{_answer(launcher)}.",
        "fix": {"text": written(remedy(launcher))},
        "next": command_json(_next(launcher), where=where),
    }


def cells_of(launcher: UnmadeLauncher) -> tuple[str, ...]:
    """Its row in the list of what is pending."""
    return launcher.namespace, f"vmi/{launcher.name}", "no-pod", EMPTY, written(without_pod(launcher))


def _answer(launcher: UnmadeLauncher) -> str:
    return written(without_pod(launcher)).removesuffix(".")


def _next(launcher: UnmadeLauncher) -> CommandLine:
    words = ("kubectl", "get", f"vmi/{launcher.name}", "-n", launcher.namespace, "-o", "yaml")
    return CommandLine(words, misnamed=misnamed((launcher.name, launcher.namespace)))
