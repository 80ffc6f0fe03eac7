"""Brief text, full text and the page are of the same parts: what one says, the others do not say otherwise."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kubectl_dra.report.blocks_text import LINES
from tests.report.html.support import EXAMPLES, ROOT, Document, Dra, words_of

READING = ("get", "describe", "explain", "dra", "logs")


@pytest.fixture(params=EXAMPLES, ids=lambda folder: folder.name)
def example(request: pytest.FixtureRequest, dra: Dra, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder: Path = request.param
    monkeypatch.chdir(folder)
    return folder


def commands(text: str) -> list[str]:
    """Those below fixes."""
    return re.findall(r"^ +(?:[A-Z][^$]*: )?\$ (.*)$", text, re.MULTILINE)


def notes(text: str) -> list[str]:
    """Those of the full text, each as one line."""
    told = text.partition("\nNotes\n")[2].partition("\n\n")[0]
    return [" ".join(note.split()) for note in re.split(r"^  - ", told, flags=re.MULTILINE)[1:]]


def test_a_fix_has_its_command_everywhere(dra: Dra, example: Path) -> None:
    words = words_of(example)
    brief, full = commands(dra(*words).out), commands(dra(*words, "--full").out)
    assert set(brief) <= set(full)
    page = Document(dra(*words, "-o", "html").out)
    shown = ["".join(element.text) for element in page.named("code")]
    for line in full:
        assert line in shown


def test_a_page_says_what_a_command_does(dra: Dra, example: Path) -> None:
    elements = Document(dra(*words_of(example), "-o", "html").out).elements
    for at, element in enumerate(elements):
        if element.name == "pre":
            verb = "".join(elements[at + 1].text).split()[1]
            effect = element.attributes["data-effect"]
            assert (effect == "reads") is (verb in READING) and (effect == "destroys" or verb != "delete"), verb
            warned = elements[at - 1].text[0] if elements[at - 1].text else ""
            marks = {"writes": "Writes", "destroys": "Destructive"}
            assert warned.startswith(marks[effect]) if effect in marks else not warned.startswith(tuple(marks.values()))
            # kubectl reads no snapshot, so what it shows may be another cluster by now.
            of_snapshot = "--snapshot" in "".join(elements[at + 1].text)
            assert ("in the cluster, not the snapshot" in warned.lower()) is not of_snapshot, (element, warned)


def test_what_kubernetes_says_is_said_once(dra: Dra, example: Path) -> None:
    words = words_of(example)
    said = json.loads(dra(*words, "-o", "json").out).get("scheduler", ())
    speakers = {word["speaker"] for word in said}
    title = f"{said[0]['speaker']} says" if len(speakers) == 1 else "Events and conditions"
    full, page = dra(*words, "--full").out, Document(dra(*words, "-o", "html").out).text()
    for message in [word["message"] for word in said][:1]:
        for text in (full, page):
            assert " ".join(text.split()).count(" ".join(message.split())) == 1
            assert title in text


def test_reasons_in_another_order_say_nothing_new(dra: Dra, tmp_path: Path) -> None:
    """Which reason of the scheduler's message comes first depends on the release."""
    text = (ROOT / "examples/explain/all-held/cluster.yaml").read_text("utf-8")
    message = "1 node(s) had untolerated taint(s), 3 cannot allocate all claims."
    assert text.count(message) == 1
    file = tmp_path / "cluster.yaml"
    for other, differs in (
        ("3 cannot allocate all claims, 1 node(s) had untolerated taint(s).", False),
        ("1 cannot allocate all claims, 3 node(s) had untolerated taint(s).", True),
    ):
        file.write_text(text.replace(message, other), "utf-8")
        full = dra("explain", "pod/sdxl-66d9f7b8c-h7m6r", "-n", "inference", "--snapshot", str(file), "--full").out
        assert ("kube-scheduler would say" in full) is differs


def test_notes_have_one_order(dra: Dra, example: Path) -> None:
    words = words_of(example)
    full = notes(dra(*words, "--full").out)
    assert full[-1].startswith("assumed: ")
    brief = [line.removeprefix("Note: ").removesuffix(" ...") for line in dra(*words).out.splitlines()]
    places = [
        next(at for at, note in enumerate(full) if note.startswith(line)) for line in brief if line[:8] == "assumed:"
    ]
    assert places in ([], [len(full) - 1])
    page = ["".join(item.text) for item in Document(dra(*words, "-o", "html").out).named("li")]
    assert [note for note in page if note in full] == full


def test_brief_text_has_fifteen_lines(dra: Dra, example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert len(dra(*words_of(example)).out.splitlines()) <= LINES


def test_what_makes_room_is_said_of_every_workload(dra: Dra, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "examples" / "fit" / "deployment-in-part"
    template, deployment = (folder / "manifest.yaml").read_text().split("---\n")
    other = deployment.replace("whisper", "parakeet")
    (tmp_path / "two.yaml").write_text("---\n".join((template, deployment, other)))
    monkeypatch.chdir(folder)
    words = [str(tmp_path / "two.yaml") if word == "manifest.yaml" else word for word in words_of(folder)]
    found = json.loads(dra(*words, "-o", "json").out)
    assert len(found["items"]) == 2
    text, page = dra(*words).out, Document(dra(*words, "-o", "html").out)
    assert text.count("What makes room") == page.text().count("What makes room") == 2
    shown = ["".join(element.text) for element in page.named("code")]
    assert commands(text) and set(commands(text)) <= set(shown)
