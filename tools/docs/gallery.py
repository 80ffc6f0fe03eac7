"""The gallery of the site: a page for each example, with a picture of its cluster, and one of them all.

The pages are made when the site is built and are nowhere else: what they show is the example itself.
"""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Final

from kubectl_dra.cli.release import assumed
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.explain.devices.inventory import Inventory, SlicesNotRead, take_inventory
from kubectl_dra.explain.devices.wanted import Wanted
from tools.docs.picture import legend, picture
from tools.examples import EXAMPLES, ROOT, examples, fit_examples

FOLDER: Final = "gallery"
_CAUSE = re.compile(r"^  ([a-z]+(?:-[a-z]+)+): ", re.MULTILINE)
_EMPTY = Inventory(rows=(), narrowed=(), notes=())

_INTRODUCTION = """\
# Gallery

Clusters that somebody could have, each with a pod that hangs, and the answer. They come with the program:
`kubectl dra demo` lists them, `kubectl dra demo NAME` plays one, without a cluster.
"""


def places() -> dict[str, str]:
    """Where the examples' pages are on the site, by the README.md of each in the repository."""
    found = {f"{_path(example)}/README.md": f"{FOLDER}/{example.name}.md" for example in [*examples(), *fit_examples()]}
    return found | {f"{_path(EXAMPLES)}/README.md": f"{FOLDER}/README.md"}


def _path(folder: Path) -> str:
    return folder.relative_to(ROOT).as_posix()


def pages() -> dict[str, str]:
    """The text of every page by its place."""
    shown = [*examples(), *fit_examples()]
    found = {f"{FOLDER}/{example.name}.md": _page(example) for example in shown}
    return found | {f"{FOLDER}/README.md": _index()}


def _page(example: Path) -> str:
    title, story = _described(example)
    answer = _answer(example)
    causes = dict.fromkeys(_CAUSE.findall(answer))
    named = ", ".join(f"[`{code}`](../../../docs/causes/{code}.md)" for code in causes if _is_cause(code))
    drawn = _inventory(example)
    played = f", or `kubectl dra demo {example.name}`" if example.parent == EXAMPLES else ""
    lines = [
        f"# {title}",
        "",
        figure(example),
        legend([drawn]) if drawn.rows else "",
        "",
        story,
        "",
        *(["## The answer", "", f"Cause: {named}", ""] if named else ["## The answer", ""]),
        f"In a clone{played}:",
        "",
        "```console",
        f"$ cd {_path(example)}",
        f"$ {(example / 'command').read_text(encoding='utf-8').strip()}",
        answer.rstrip("\n"),
        "```",
        "",
        f"Exit code {(example / 'exit-code').read_text().strip()}. [Its files](.).",
        "",
    ]
    return "\n".join(lines)


def _index() -> str:
    lines = [_INTRODUCTION, legend([_inventory(example) for example in examples()]), ""]
    for heading, prefix, shown in (
        ("Why is it pending?", "", examples()),
        ("Does it fit?", "../fit/", fit_examples()),
    ):
        lines += [f"## {heading}", "", '<div class="gallery" markdown>', ""]
        for example in shown:
            title, _ = _described(example)
            first = _answer(example).partition("\n\n")[0].replace("\n", " ")
            lines += [
                '<div class="shown" markdown>',
                "",
                f"**[{title}]({prefix}{example.name}/README.md)**",
                "",
                figure(example),
                "",
                f"{_escaped(first)}",
                "",
                "</div>",
                "",
            ]
        lines += ["</div>", ""]
    return "\n".join(lines)


def figure(example: Path) -> str:
    """The picture of an example's cluster, as HTML for a page of the site."""
    inside = picture(_inventory(example)) or '<span class="empty">No devices are published.</span>'
    return f'<div class="fleet" data-search-exclude>{inside}</div>'


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def _described(example: Path) -> tuple[str, str]:
    """The heading of its README.md, and what is below."""
    heading, _, story = (example / "README.md").read_text(encoding="utf-8").partition("\n")
    return heading.removeprefix("# "), story.strip()


def _answer(example: Path) -> str:
    return (example / "expected.txt").read_text(encoding="utf-8")


def _is_cause(code: str) -> bool:
    return (ROOT / "docs" / "causes" / f"{code}.md").exists()


@cache
def _inventory(example: Path) -> Inventory:
    """The devices of the cluster that the example's command reads."""
    words = shlex.split((example / "command").read_text(encoding="utf-8"))
    snapshot = read_snapshot([str(example / words[words.index("--snapshot") + 1])])
    settings = assumed(snapshot)
    try:
        return take_inventory(snapshot, settings.scheduler.cycle(snapshot), Wanted(), ())
    except SlicesNotRead:
        return _EMPTY
