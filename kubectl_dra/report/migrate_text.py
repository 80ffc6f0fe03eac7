"""The plan of a migration for people: by file what changes and why, what stays, and what to do next."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any, Final, TextIO

from kubectl_dra.api.claims import devices_of
from kubectl_dra.errors import DraError
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.explain.phrase import Words
from kubectl_dra.grouped import grouped
from kubectl_dra.manifests.inputs import is_file
from kubectl_dra.migrate.codes import PAGES
from kubectl_dra.migrate.landing import SHOWN, changed_total
from kubectl_dra.migrate.model import ClusterHas, LandingComparison, MigratedFile, MigrationReport, Moved, Remark, Sort
from kubectl_dra.report.color import Painter
from kubectl_dra.report.explain_words import reason
from kubectl_dra.report.json_output import SCHEMA_VERSION, filled
from kubectl_dra.report.phrases import written
from kubectl_dra.report.table import FindingCount, write_counts
from kubectl_dra.text import amount, join, out_of, page_of, some

_STYLES: Final[Mapping[Sort, str]] = {
    "change": "green",
    "object": "green",
    "offer": "yellow",
    "note": "cyan",
    "refusal": "red",
}
_WORDS: Final[Mapping[Sort, str]] = {
    "change": "change",
    "object": "add",
    "offer": "unsafe",
    "note": "note",
    "refusal": "refused",
}
_FIRST: Final[Sequence[Sort]] = ("refusal", "offer", "change", "object", "note")
_SHORT: Final = 60
"""A text of less characters is said again rather than referred to."""
LEFT: Final[Mapping[Sort, str]] = {"offer": "needs --unsafe", "refusal": "refused"}
"""What is left to people, in the terms of the one-line messages."""


def write_text(
    report: MigrationReport,
    color: str = "auto",
    stream: TextIO | None = None,
    done: str = "",
    next_commands: Sequence[str] = (),
) -> None:
    """Write the summary and what has to be true first, all remarks, and commands to go on with.

    ``done`` says what was written where.
    """
    out = Painter(stream or sys.stdout, color)
    out.paragraph(summary(report, done, commands=False), style="bold")
    for sentence in (*in_part(report), *conditions(report)):
        out.paragraph(sentence)
    seen: dict[tuple[str, str], Remark] = {}
    for file in report.all_files:
        if file.items:
            out.write("")
            out.write((file.name, "bold"))
            _items(out, file, seen)
    if report.comparisons or next_commands or _about(report):
        out.write("")
    if report.comparisons:
        write_comparisons(out, report.comparisons)
    write_counts(out, _counts(report), "remark")
    # Commands are never wrapped: they are there to be pasted.
    for number, command in enumerate(next_commands):
        out.write(("Next: " if not number else "      ", "bold"), command)
    if about := _about(report):
        out.write(("Why:  ", "bold"), about)


def in_part(report: MigrationReport) -> Iterator[str]:
    """Say what stays with device plugins although its file changes."""
    stays = [
        f"{what or file} ({some(names)})" if names else what or file for (file, what), names in report.in_part.items()
    ]
    if stays:
        yield f"Migrated in part only. Refused, and left as it is: {some(stays, 3)}."


def conditions(report: MigrationReport) -> Iterator[str]:
    """Say what has to be true in the cluster before the result is applied."""
    moved = report.moved
    if not moved:
        return
    before, also = ("Before you apply it: ", "") if report.changed else ("With --unsafe, ", "also ")
    if report.settings.reverse:
        names = join(dict.fromkeys(moved_request.resource for moved_request in moved))
        yield (
            f"{before}the nodes {also}need the device plugin of {names}, and the DRA driver must no longer hand out "
            "the same devices."
        )
        return
    own = {item.new for item in report.items()} | {f"DeviceClass {name}" for name in report.own_classes}
    drivers: dict[str, list[str]] = {}
    for moved_request in moved:
        classes = drivers.setdefault(moved_request.driver, [])
        if moved_request.device_class not in classes and f"DeviceClass {moved_request.device_class}" not in own:
            classes.append(moved_request.device_class)
    needs = [_with_classes(driver, classes) for driver, classes in drivers.items()]
    yield f"{before}the cluster {also}needs {join(needs)}; no device plugin may hand out the same devices."
    if report.has is not None:
        named = list(dict.fromkeys(chain.from_iterable(drivers.values())))
        yield from _there(report.has, named, [driver for driver in drivers if driver])


def _there(has: ClusterHas, classes: Sequence[str], drivers: Sequence[str]) -> Iterator[str]:
    """Say which of them the cluster has and lacks, and what of it is not known."""
    said: dict[bool | None, str] = {}
    for there in (True, False, None):
        named = [name for name in classes if has.classes.get(name) is there]
        publish = [name for name in drivers if has.drivers.get(name) is there]
        parts = [f"DeviceClass{'' if len(named) == 1 else 'es'} {join(named)}"] if named else []
        parts += [f"ResourceSlices of driver{'' if len(publish) == 1 else 's'} {join(publish)}"] if publish else []
        said[there] = " and ".join(parts)
    seen = [f"{word} {said[there]}" for there, word in ((True, "has"), (False, "lacks")) if said[there]]
    if seen:
        yield f"The cluster {'; it '.join(seen)}."
    if said[None]:
        yield f"Not read, so it is not known whether the cluster has {said[None]}."


def _with_classes(driver: str, classes: Sequence[str]) -> str:
    named = f"{'DeviceClass' if len(classes) == 1 else 'DeviceClasses'} {' and '.join(classes)}" if classes else ""
    if not driver:
        return f"{named} and its DRA driver"
    return f"DRA driver {driver}{f' with {named}' if named else ''}"


def _counts(report: MigrationReport) -> list[FindingCount]:
    """The remarks by code, what is left to people first."""
    groups = grouped(((item.sort, item.code), item) for item in report.items())
    rows = sorted(groups.items(), key=lambda row: (_FIRST.index(row[0][0]), -len(row[1])))
    return [
        FindingCount(
            _WORDS[sort],
            f"{code} {PAGES[code].name if code in PAGES else ''}",
            len(items),
            tuple(dict.fromkeys(item.file for item in items)),
        )
        for (sort, code), items in rows
    ]


def _items(out: Painter, file: MigratedFile, seen: dict[tuple[str, str], Remark]) -> None:
    for (_, _, title), items in groupby(file.items, key=lambda item: (item.document, item.root, item.object)):
        remarks = list(items)
        if title:
            out.write("  ", (title, "bold"))
        for item in sorted(remarks, key=lambda item: (_FIRST.index(item.sort), item.code)):
            _item(out, item, seen)


def _item(out: Painter, item: Remark, seen: dict[tuple[str, str], Remark]) -> None:
    """Write one remark; what another one ``seen`` says word by word is not said again."""
    name = PAGES[item.code].name if item.code in PAGES else ""
    subject = item.new or item.field
    place, code = f"    {item.line}:{item.column}  ", f" {item.code} {name}"
    beside = len(place) + 7 + len(code) + 4 + len(subject) <= out.width
    out.write(
        place,
        (_WORDS[item.sort].ljust(7), _STYLES[item.sort]),
        code,
        (f"    {subject}" if subject and beside else "", "dim"),
    )
    # A field that is too long for the line is found by its line and column.
    if item.new and not beside:
        out.paragraph(item.new, indent="        ", first="      ", style="dim")
    message, way_out = _once(item.message, item, seen), _once(item.way_out, item, seen)
    if message:
        out.paragraph(message, indent="      ")
    if item.origin:
        out.paragraph(item.origin, indent="         ", first="      from: ", style="dim")
    # Where both stand already, that is said once.
    if way_out and way_out != message:
        out.paragraph(way_out, indent="         ", first="      do: ", style="green")


def _once(text: str, item: Remark, seen: dict[tuple[str, str], Remark]) -> str:
    """The text, or where it stands already if that is shorter."""
    first = seen.setdefault((item.code, text), item)
    place = f"{first.file}:{first.line}" if first.file != item.file else f"line {first.line}"
    return text if first is item or len(text) < _SHORT else f"the same as for {place}"


def write_check(report: MigrationReport) -> None:
    """Write one line for each file that would change, and for each thing left to people."""
    out = Painter(color="never")
    for file in report.all_files:
        if file.changed:
            out.sentence(f"{file.name}: would {'be added' if file.is_new else 'change'}")
        for item in file.items:
            if item.sort in LEFT:
                out.sentence(f"{file.name}:{item.line}:{item.column}: {item.code} {LEFT[item.sort]}: {item.message}")
    out.sentence(summary(report), indent="")


def _about(report: MigrationReport) -> str:
    """The command that tells of the first refusal."""
    codes = sorted({item.code for item in report.items() if item.sort == "refusal"})
    return f"kubectl dra migrate --explain {codes[0]}" if codes else ""


def summary(report: MigrationReport, done: str = "", *, with_diff: bool = False, commands: bool = True) -> str:
    """One sentence: what changes in how many files, what is refused, for which Kubernetes.

    ``with_diff``: the differences stand beside it. Without ``commands`` these follow below.
    """
    changes, added = len(report.items("change")), len(report.items("object"))
    offers, refused, notes = (len(report.items(sort)) for sort in ("offer", "refusal", "note"))
    files = len(report.changed)
    parts = []
    if changes or added:
        what = [amount(changes, "change")] if changes else []
        what += [amount(added, "new object")] if added else []
        new = sum(file.is_new for file in report.changed)
        where = out_of(files - new, report.read, "file")
        where += f" and {amount(new, 'new file')}" if new else ""
        # The file of --claims-file need not be one of those that were read.
        where = amount(files, "file") if report.claims is not None else where
        parts.append(f"{' and '.join(what)} in {where}")
    if offers:
        parts.append(f"{amount(offers, 'unsafe change')} not made (--unsafe makes {'it' if offers == 1 else 'them'})")
    parts += [amount(refused, "refusal")] if refused else []
    parts += [amount(notes, "note")] if notes else []
    parts += [f"{report.ignored} left by comments"] if report.ignored else []
    settings = report.settings
    text = ", ".join(parts) if parts else f"nothing to migrate in {amount(report.read, 'file')}"
    if parts and not (changes or added or offers):
        text = f"nothing is changed in {amount(report.read, 'file')}: {text}"
    older = f" (resource.k8s.io/{settings.version})" if settings.version != "v1" else ""
    text += f", for Kubernetes {settings.release}{older}."
    if report.unsafe and not any(item.safety == "unsafe" for item in report.items()):
        text += " Nothing here is unsafe: --unsafe makes no difference."
    if done:
        text += f" {done}"
    elif files:
        # Only files can be changed in place: not standard input, nor what kustomize builds.
        in_place = all(is_file(file.name) for file in report.changed)
        them = "it" if changes + added == 1 else "them"
        way = f"--write makes {them}" if in_place else "-o yaml prints the result, --output-dir DIR writes it"
        shows = "" if with_diff else f"--diff shows {them}, "
        text += f" Nothing is written yet: {shows}{way}."
    if commands and (about := _about(report)):
        text += f" About {about.rpartition(' ')[2]}: {about}."
    return text


# Where migrated pods would run, for people and as JSON.


def write_comparisons(out: Painter, compared: Sequence[LandingComparison]) -> None:
    """Write, for each pod, on how many nodes it could run before and after, and what it would get now."""
    out.write(("Where the pods would land", "bold"))
    for comparison in compared:
        _one(out, comparison)
    fewer, same, more = changed_total(compared)
    total = sum(comparison.pods for comparison in compared)
    open_ = total - fewer - same - more
    pods = _pods(total, all(comparison.counted for comparison in compared))
    out.paragraph(
        f"{pods[:1].upper()}{pods[1:]}, each looked at by itself: {fewer} could run on fewer nodes than before, {same} "
        f"on as many, {more} on more{f', {open_} not known' if open_ else ''}. Before: nodes where a device plugin, "
        "or a DeviceClass that serves the resource, has enough, used or not. After: nodes with such devices, used or "
        "not."
    )
    out.write("")


def _pods(number: int, counted: bool) -> str:
    return f"{'' if counted else 'at least '}{amount(number, 'pod')}"


def _one(out: Painter, comparison: LandingComparison) -> None:
    amounts = ", ".join(f"{amount} {name}" for name, amount in comparison.resources.items())
    if comparison.pods != 1 or not comparison.counted:
        amounts = f"{_pods(comparison.pods, comparison.counted)}, {amounts} each"
    out.write(
        "  ", (comparison.object, "bold"), f"{f' {comparison.pod}' if comparison.pod else ''}  ", (amounts, "dim")
    )
    style = "red" if comparison.difference < 0 else "green"
    if comparison.unread:
        out.write("    nodes: ", ("not known", "yellow"), f" (not read: {join(comparison.unread)})")
    elif comparison.before or comparison.after:
        change = (
            f"{abs(comparison.difference)} {'fewer' if comparison.difference < 0 else 'more'}"
            if comparison.difference
            else "as many"
        )
        out.write("    nodes: ", f"{len(comparison.before)} before, {len(comparison.after)} after, ", (change, style))
    else:
        out.write("    nodes: none before, ", ("none after", "yellow"))
    for lost in comparison.lost:
        out.paragraph(f"no more on {some(lost.nodes, SHOWN)}: {_said(lost.reason)}", indent="      ")
    if comparison.gained:
        out.paragraph(f"also on {some(comparison.gained, SHOWN)}", indent="      ")
    if comparison.landings:
        first = comparison.landings[0]
        devices = ", ".join(map(str, devices_of(first.claims)))
        out.paragraph(f"now: {amount(len(comparison.landings), 'node')}; on {first.node}: {devices}", indent="    ")
    else:
        out.paragraph(f"now: {comparison.verdict.word}: {_said(comparison.answer)}", indent="    ", style="yellow")


def _said(why: Words | Diagnosis | DraError | None) -> str:
    """A reason; for a diagnosis its sentence without the pod and the verdict, which stand beside it."""
    if why is None:
        return ""
    if isinstance(why, DraError):
        return str(why)
    return f"{reason(why)}." if isinstance(why, Diagnosis) else written(why)


def landing_json(compared: Sequence[LandingComparison]) -> list[dict[str, Any]]:
    """The comparisons, in the shape of ``equivalence`` of ``schemas/migrate.json``."""
    return [
        {
            "file": comparison.file,
            "object": comparison.object,
            "podName": comparison.pod,
            "resources": dict(comparison.resources),
            "before": list(comparison.before),
            "after": list(comparison.after),
            "difference": comparison.difference,
            "landings": [
                {"node": landing.node, "deviceNames": [*map(str, devices_of(landing.claims))]}
                for landing in comparison.landings
            ],
            "lost": [{"reason": _said(lost.reason), "nodes": list(lost.nodes)} for lost in comparison.lost],
            "gained": list(comparison.gained),
            "verdict": comparison.verdict.value,
            "answer": _said(comparison.answer),
            "notes": [written(note) for note in comparison.notes],
            "podCount": comparison.pods,
            "podCountExact": comparison.counted,
            **({"unreadKinds": list(comparison.unread)} if comparison.unread else {}),
        }
        for comparison in compared
    ]


# The plan of a migration as JSON, in the shape of ``schemas/migrate.json``.


def to_json(report: MigrationReport) -> dict[str, Any]:
    """The report: what was assumed, counts, and for each file the remarks and whether it changes."""
    settings = report.settings
    out: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "MigrationReport",
        "assumed": {
            "kubernetesVersion": str(settings.release),
            "apiVersion": f"resource.k8s.io/{settings.version}",
            "strategy": settings.strategy,
            "share": settings.share,
            "unsafe": report.unsafe,
        },
        "summary": {
            "files": report.read,
            "objects": report.manifests,
            "filesChanged": len(report.changed),
            "changes": len(report.items("change")),
            "newObjects": len(report.items("object")),
            "offers": len(report.items("offer")),
            "notes": len(report.items("note")),
            "refusals": len(report.items("refusal")),
            "ignored": report.ignored,
        },
        "moved": [_moved(moved_request, report.has) for moved_request in report.moved],
        "files": [
            {"name": file.name, "changed": file.changed, "items": [*map(_item_json, file.items)]}
            for file in report.all_files
        ],
        "notes": list(report.notes),
        "defects": list(report.defects),
    }
    if report.comparisons is not None:
        out["equivalence"] = landing_json(report.comparisons)
    return out


def _moved(moved: Moved, has: ClusterHas | None) -> dict[str, Any]:
    exists = has.classes.get(moved.device_class) if has is not None else None
    publishes = has.drivers.get(moved.driver) if has is not None else None
    known = filled(deviceClassExists=exists, driverPublishes=publishes)
    return {"resource": moved.resource, "deviceClassName": moved.device_class, "driver": moved.driver, **known}


def _item_json(item: Remark) -> dict[str, Any]:
    page = PAGES.get(item.code)
    return {
        "sort": item.sort,
        "code": item.code,
        "name": "" if page is None else page.name,
        "line": item.line,
        "column": item.column,
        "object": item.object,
        "field": item.field,
        "message": item.message,
        "page": page_of("changes", item.code),
        **({"safety": item.safety} if item.sort in ("change", "object", "offer") else {}),
        **filled(newObject=item.new, origin=item.origin, fix=filled(text=item.way_out)),
    }
