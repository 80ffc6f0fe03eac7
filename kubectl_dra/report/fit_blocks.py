"""What fits, as blocks: the answer, where, what stops the next pod, what would make room, what to do next."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kubectl_dra.exit_codes import Verdict
from kubectl_dra.explain.cause_kinds import Family
from kubectl_dra.explain.diagnosis import Diagnosis
from kubectl_dra.fit.result import FitAnswer, More, OneMoreNode, WorkloadFit
from kubectl_dra.report.bars import Share, write_shares
from kubectl_dra.report.blocks import (
    TONES,
    Answer,
    Block,
    Items,
    Marked,
    Para,
    Section,
    ShellCommand,
    Tone,
    WordMark,
    left_out,
    noted,
    prose,
    shell,
)
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.fit_stop_words import code, fix_commands, in_domain, needed, own_fix, second, stop, supposing
from kubectl_dra.report.fit_words import (
    NodeOfPods,
    broken_node,
    change,
    conditions,
    gain,
    headline,
    is_open,
    making_it,
    missing,
    places,
    tried,
    with_node,
    without,
)
from kubectl_dra.report.phrases import MAX_VIEW, assumed, commands_of, names_of_devices, sentences, written
from kubectl_dra.text import amount, some

if TYPE_CHECKING:
    from kubectl_dra.report.color import Painter
    from kubectl_dra.report.html.page import PageOrigin

MAX_PLACES: Final = 3
MAX_DEVICES: Final = 8
FEW_DEVICES: Final = 2
"""Where there is not room for more."""
MAX_NOTES: Final = 2


def write_fit(
    answer: FitAnswer,
    color: str = "auto",
    *,
    invocation: Invocation,
    full: bool = False,
) -> None:
    """Writes the answer, on fifteen lines if it is about one workload; ``full``: with all that supports it."""
    from kubectl_dra.report.blocks_text import LINES, write_blocks, write_command
    from kubectl_dra.report.color import PROSE_WIDTH, Painter, wrap

    out = Painter(color=color)
    write_blocks(out, missing(answer.missing_namespaces, invocation.where))
    write_blocks(out, list(_new_nodes(answer, invocation)))
    told: set[str] = set()
    for workload in answer.workloads:
        # What a note says of the workload comes before a question with one more node.
        tried = invocation if full or not answer.notes else invocation._replace(argv=())
        first, *blocks = blocks_of(workload, tried, full=full, told=told)
        for devices in (MAX_DEVICES, FEW_DEVICES):
            if not full and out.lines_put + _length([first, *blocks], out) + 2 > LINES:
                first, *blocks = blocks_of(workload, invocation._replace(argv=()), devices=devices, told=told)
        told |= {why} if (why := stop(workload, told=True)) else set()
        write_blocks(out, [first])
        write_shares(out, _shares(workload))
        write_blocks(out, blocks)
        out.write("")
    fixes_told = {how.argv[:3] for each in answer.workloads if own_fix(each) for how in fix_commands(each, invocation)}
    room, untold = LINES - out.lines_put - 1, 0
    beside = {
        note: how
        for note, how in commands_of((*answer.notes, *answer.views)).items()
        # What a fix says to run stands there.
        if any(line.argv[:3] not in fixes_told for line in how)
    }
    long = {text for text in map(written, answer.views) if len(text) > MAX_VIEW}
    for number, note in enumerate(_notes(answer)):
        lines = len(wrap(f"Note: {note}", min(out.width, PROSE_WIDTH) - 2)) + (note in beside)
        if full or (number < MAX_NOTES and lines <= room and note not in long):
            room -= lines
            out.heading("Note", f": {note}")
            if note in beside:
                write_blocks(out, [shell(beside[note], invocation.where)])
        else:
            untold += 1
    if not invocation.argv:
        if len(_notes(answer)) > untold:
            # What follows is apart from the notes, as from the workloads.
            out.write("")
        return
    stopped = any(workload.stop is not None for workload in answer.workloads)
    fixes = 0 if full else sum(len(workload.more) - len(_best(workload.more)) for workload in answer.workloads)
    rest = left_out(fixes, untold)
    more = ("--full",) if rest else ()
    following = invocation.refined(*more, *(("--explain",) if stopped else () if rest else ("-o", "json")))
    if any(map(conditions, answer.workloads)):
        following, rest = invocation.refined("--complete"), ""
    elif answer.workloads and all(each.workload.of_each_node and each.unclear for each in answer.workloads):
        # It says on which nodes such a pod fits.
        following, rest = invocation._replace(argv=("kubectl", "dra", "explain", *invocation.argv[3:])).refined(), ""
    write_command(out, ShellCommand((following,), "Next"), rest)


def _length(blocks: Sequence[Block], out: Painter) -> int:
    """Number of lines that the blocks take where they are written to."""
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.color import Painter, Sheet

    tried = Painter(Sheet(out.width), color="never")
    write_blocks(tried, blocks)
    return tried.lines_put


def to_html(answer: FitAnswer, origin: PageOrigin, invocation: Invocation) -> str:
    """The page: each workload with a bar of its pods, those that run, those that get a node, and those that do not."""
    from kubectl_dra.report.html.fleet import divided
    from kubectl_dra.report.html.page import blocks_html, page, tag

    parts = [
        tag("header", tag("h1", "What fits")),
        *blocks_html(missing(answer.missing_namespaces, invocation.where), 2),
    ]
    parts += blocks_html(list(_new_nodes(answer, invocation)), 2)
    for workload in answer.workloads:
        first, *blocks = blocks_of(workload, invocation)
        parts.append(tag("section", tag("h2", workload.workload.title), *blocks_html([first], 2)))
        shares = _shares(workload)
        words = ", ".join(f"{amount(share.size, 'pod')} {share.called}" for share in shares if share.size)
        bar = divided([(_CLASSES[share.mark], share.size) for share in shares])
        parts.append(tag("div", bar, tag("span", words, class_="counts"), class_="pods"))
        parts += blocks_html(blocks, 3)
    parts += blocks_html([noted(_notes(answer), commands_of((*answer.notes, *answer.views)), invocation.where)], 2)
    return page("What fits", parts, origin)


def _new_nodes(answer: FitAnswer, invocation: Invocation) -> Iterator[Block]:
    """The new nodes that are supposed, how many others it takes, and why they take no pod."""
    if answer.given:
        yield prose(f"{supposing(answer.given)}:")
    if answer.needed is not None and not is_open(answer):
        yield prose(f"{needed(answer.needed)}.")
        if exact := in_domain(answer.needed, invocation):
            yield shell((exact,), invocation.where)
    if answer.unhelpful:
        yield prose(f"A new node takes none of the pods: {written(answer.unhelpful)}.")


_CLASSES: Final = {"#": "held", "+": "free", "/": "unserved", "x": "unusable"}
"""Classes of a bar's parts in a page's style."""


def _shares(workload: WorkloadFit) -> list[Share]:
    """The pods that run, those that get a node, those that do not start there, and those that get none."""
    shares = [
        Share(workload.running, "#", "", "running"),
        Share(len(workload.placed_pods) - workload.begin.lost, "+", "green", "placed"),
        Share(workload.begin.lost, "/", "red", "placed, not starting"),
    ]
    if not workload.as_many:
        shares.append(Share(max(0, workload.pods - workload.placed), "x", "red", "without a node"))
    return shares


def blocks_of(
    workload: WorkloadFit,
    invocation: Invocation,
    *,
    full: bool = False,
    devices: int = MAX_DEVICES,
    told: Collection[str] = (),
) -> Iterator[Block]:
    """What comes of a workload; a page folds what text leaves out, unless that is ``full``. ``devices``: so many of a
    node are named. ``told`` is why pods of the workloads before it do not fit.
    """
    yield Answer(headline(workload).removesuffix("."), "", TONES[workload.verdict])
    # What was placed without what decides is no answer.
    rows = places(workload) if not workload.unclear or conditions(workload) else []
    shown = len(rows) if len(rows) <= MAX_PLACES else MAX_PLACES - 1
    rest = f"{amount(sum(row.pods for row in rows[shown:]), 'pod')} on {amount(len(rows) - shown, 'more node')}"
    yield Items(tuple((_place(row, devices),) for row in rows), "  ", None if full else shown, rest)
    nowhere = without(workload) if len(workload.without) > 1 else []
    yield Items(tuple((Para((text,), hang=2),) for text in nowhere), "  ", None if full else MAX_PLACES)
    if why := broken_node(workload, invocation):
        node = (*workload.begin.nodes, *workload.begin.maybe)[0].node
        yield shell((why,), invocation.where, f"What is wrong on {node}")
    # That it is open is said already.
    open_ = workload.unclear and not conditions(workload)
    if workload.stop is not None and not (open_ and workload.stop.diagnosis.verdict is Verdict.UNDETERMINED):
        does, do = ("may", "may") if workload.may_fit else ("does", "do")
        many = (
            f"is the first of {workload.stop.others + 1:,} that {do} not fit"
            if workload.stop.others
            else f"{does} not fit"
        )
        cause = (Marked(code(workload), WordMark.CAUSE), ": ") if code(workload) else ()
        next_code, next_cause = second(workload.stop)
        why_not = stop(workload, told=bool(next_cause))
        again = stop(workload, told=True) in told
        blocks: list[Block] = [Para((*cause, "as above" if again else why_not), hang=2)]
        if own := own_fix(workload):
            blocks.append(prose(f"Fix: {own}", Tone.GOOD, 2))
            blocks += [shell(how, invocation.where)] if (how := fix_commands(workload, invocation)) else []
        if next_cause:
            blocks.append(Para((Marked(next_code, WordMark.CAUSE), f": {next_cause}"), hang=2))
        if workload.stop.if_first:
            order = written(workload.stop.if_first)
            blocks.append(prose(f"{order[:1].upper()}{order[1:]}.", hang=2))
        if workload.tried and not workload.more and not _beside_room(workload.stop.diagnosis):
            own = " (its own pods are left out: ending one only makes its successor wait)" if workload.running else ""
            blocks.append(prose(tried(workload.tried, own)))
        its = f" (for node {workload.without[0].node})" if workload.without else ""
        title = f"Pod {workload.stop.pod}{its} {many}"
        said = title == headline(workload).removesuffix(".")
        yield Section("Why" if said else f"{title}:", tuple(blocks))
    if workload.more:
        best = _best(workload.more)
        changes = workload.more if full else [*best, *(more for more in workload.more if more not in best)]
        items = tuple(tuple(_change(workload, more, invocation)) for more in changes)
        title = "What makes room, proved by placing the pods again with it"
        yield Section(title, (Items(items, shown=None if full else len(best), rest=""),))


def _beside_room(diagnosis: Diagnosis) -> bool:
    """Whether the first pod lacks what no room gives: a template, a class, published devices that match, a node."""
    findings = diagnosis.findings
    return not diagnosis.nodes or (
        bool(findings) and findings[0].kind.family in (Family.POD, Family.CLAIM, Family.REQUEST, Family.POOLS)
    )


def _place(place: NodeOfPods, most: int) -> Para:
    on = f": {names_of_devices([*map(place.taken, place.claims)], most)}" if place.claims else ""
    return Para((f"{amount(place.pods, 'pod')} on {place.node}{on}",), hang=2)


def _best(gains: Sequence[More]) -> list[More]:
    """The mildest end of a holder and the best kind of node, in their order."""
    holder = next((more for more in gains if not isinstance(more.change, OneMoreNode)), None)
    node = next((more for more in gains if isinstance(more.change, OneMoreNode)), None)
    best = [more for more in gains if more is holder or more is node]
    # What makes no replica whole is worth saying only where nothing does.
    return [more for more in best if more.replicas] or best


def _change(workload: WorkloadFit, more: More, invocation: Invocation) -> Iterator[Para | ShellCommand]:
    text = f"{change(more.change)}: {gain(workload, more)}."
    yield prose(f"{text[:1].upper()}{text[1:]}", hang=0)
    if makes := making_it(more.change):
        yield shell(makes, invocation.where)
    elif tried := with_node(more.change, invocation):
        yield shell((tried,), invocation.where)


def _notes(answer: FitAnswer) -> list[str]:
    notes = sentences(answer.notes)
    if answer.first:
        verb = "waits" if len(answer.first) == 1 else "wait"
        who = f"{amount(len(answer.first), 'other pod')} that {verb} for devices"
        notes.append(f"{who} may be placed first: {some(answer.first, 2)}")
    return [*notes, *sentences(filter(None, (answer.other_nodes,))), *map(written, answer.views), assumed(answer)]
