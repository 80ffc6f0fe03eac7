"""What every page promises: it is complete, it allows nothing, it says the answer, and it is always the same."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from kubectl_dra.report.html.page import PageOrigin, page
from kubectl_dra.text import DOCS
from tests.cli.conftest import Ran
from tests.report.html.support import EXAMPLES, ROOT, Document, Dra, words_of

Html = Callable[..., Ran]
ORIGIN = PageOrigin(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "https://10.0.0.1:6443", "prod", (), "1.36")
EPOCH = "1767323045"
MIXED = ROOT / "examples" / "explain" / "mixed-fleet"


@pytest.fixture(autouse=True)
def at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the time fixed the same input gives the same page."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", EPOCH)


@pytest.fixture
def html(dra: Dra, monkeypatch: pytest.MonkeyPatch) -> Html:
    """Runs a command in a folder, for its page."""

    def run(folder: Path, *words: str) -> Ran:
        monkeypatch.chdir(folder)
        return dra(*words, "-o", "html")

    return run


def promises(source: str) -> Document:
    """Checks what holds for every page."""
    assert source.isascii()
    document = Document(source)
    policies = [meta.attributes["content"] for meta in document.named("meta") if "http-equiv" in meta.attributes]
    (policy,) = policies
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    for name in ("style", "script"):
        (element,) = document.named(name)
        digest = base64.b64encode(hashlib.sha256("".join(element.text).encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    for element in document.elements:
        assert not any(name.startswith("on") or name == "style" for name in element.attributes), element
        assert element.attributes.get("src") is None
        href = element.attributes.get("href")
        to_our_pages = element.name == "a" and element.attributes.get("rel") == "noreferrer"
        assert (
            href is None or href.startswith("#") or href == "data:," or (to_our_pages and href.startswith(f"{DOCS}/"))
        )
    ids = Counter(element.attributes["id"] for element in document.elements if "id" in element.attributes)
    assert not [name for name, count in ids.items() if count > 1]
    for element in document.named("label"):
        assert element.attributes["for"] in ids
    (moment,) = document.named("time")
    assert moment.text[0].endswith(" UTC") and " from " in document.text()
    levels = [int(heading.name[1]) for heading in document.elements if re.fullmatch("h[1-6]", heading.name)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    return document


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_examples(html: Html, folder: Path) -> None:
    ran = html(folder, *words_of(folder))
    assert ran.code == int((folder / "exit-code").read_text()) and not ran.err
    shown = " ".join(promises(ran.out).text().split())
    expected = (folder / "full.txt").read_text()
    answer = " ".join(expected.split("\n\n")[0].split())
    assert answer in shown
    for cause in re.findall(r"^  [0-9]+\. ([a-z-]+): ", expected, re.MULTILINE):
        assert f"What {cause} means" in shown


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_a_cell_for_each_device(dra: Dra, html: Html, folder: Path) -> None:
    snapshot = [
        word
        for flag in re.findall(r"--snapshot (\S+)", (folder / "command").read_text())
        for word in ("--snapshot", flag)
    ]
    if not snapshot:
        pytest.skip("the example reads no snapshot")
    ran = html(folder, "devices", *snapshot)
    names = dra("devices", *snapshot, "-o", "name")
    assert ran.code == names.code and not ran.err
    document = promises(ran.out)
    cells = [element for element in document.elements if element.attributes.get("role") == "gridcell"]
    assert len(cells) == len(names.out.splitlines())
    shown = document.text()
    for name in names.out.split():
        assert name in shown


def test_output_is_reproducible(html: Html) -> None:
    for words in (
        words_of(MIXED),
        ["devices", "--snapshot", "cluster.yaml"],
        ["explain", "-A", "--snapshot", "cluster.yaml"],
    ):
        first, second = (html(MIXED, *words).out for _ in range(2))
        assert first and first == second


def test_several_answers(dra: Dra, tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(10)]
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": []}} for name in names
    ]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    ran = dra("explain", "-f", "pods.yaml", "--snapshot", str(MIXED / "cluster.yaml"), "-o", "html")
    document = promises(ran.out)
    links = [element.attributes["href"] for element in document.named("a") if "".join(element.text).startswith("Pod ")]
    assert links == [f"#d{number}" for number in range(10)]
    assert [element.attributes["id"] for element in document.named("article")] == [link[1:] for link in links if link]
    # Without claims there is nothing to put a picture beside.
    assert not [element for element in document.elements if element.attributes.get("role") == "grid"]


def test_several_answers_say_how_devices_are_used_once(html: Html, tmp_path: Path) -> None:
    items = yaml.safe_load((MIXED / "cluster.yaml").read_text())["items"]
    (pod,) = (each for each in items if each["kind"] == "Pod" and each["metadata"]["name"] == "serve-0")
    pods = [{**pod, "metadata": {"name": name, "namespace": "ml"}, "status": {}} for name in ("a", "b")]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    ran = html(MIXED, "explain", "-f", str(tmp_path / "pods.yaml"), "--snapshot", "cluster.yaml")
    document = promises(ran.out)
    assert sum(element.attributes.get("role") == "grid" for element in document.elements) == 2
    assert sum(element.attributes.get("class") == "bars" for element in document.elements) == 1
    assert document.text().count("Use by namespace") == 1


def test_the_way_past_the_picture_says_where_it_leads(html: Html) -> None:
    for name, words in (("fits", "The claims"), ("all-held", "Why, and what would help")):
        folder = ROOT / "examples" / "explain" / name
        document = promises(html(folder, *words_of(folder)).out)
        (jump,) = (element for element in document.named("a") if (element.attributes["href"] or "").startswith("#why-"))
        assert "".join(jump.text) == words


def test_all_pending_claims(html: Html) -> None:
    ran = html(MIXED, "explain", "-A", "--snapshot", "cluster.yaml")
    shown = promises(ran.out).text()
    assert ran.code == 1 and "1 pod is stuck." in shown and "ml: pod/serve-0" in shown


def test_the_picture_comes_before_any_table(html: Html) -> None:
    narrowed = ["devices", "--snapshot", "cluster.yaml", "--driver", "gpu.amd.com"]
    for words in (words_of(MIXED), narrowed, ["explain", "-A", "--snapshot", "cluster.yaml"]):
        elements = promises(html(MIXED, *words).out).elements
        picture = next(at for at, element in enumerate(elements) if element.attributes.get("role") == "grid")
        bars = next(at for at, element in enumerate(elements) if element.attributes.get("class") == "bars")
        table = next(at for at, element in enumerate(elements) if element.name == "table")
        assert bars < picture < table


def test_what_fits_is_a_bar_and_the_cause_leads_to_its_page(html: Html) -> None:
    folder = ROOT / "examples" / "fit" / "deployment-in-part"
    document = promises(html(folder, *words_of(folder)).out)
    assert "2 pods placed, 2 pods without a node" in document.text()
    assert f"{DOCS}/causes/allocation-orphaned.md" in [
        element.attributes.get("href") for element in document.named("a")
    ]


def test_a_node_narrows_the_picture(html: Html) -> None:
    ran = html(MIXED, *words_of(MIXED), "--node", "h100-1")
    headers = [element for element in promises(ran.out).elements if element.attributes.get("role") == "rowheader"]
    assert len(headers) == 1


def test_traces_and_second_opinions_are_shown(html: Html) -> None:
    folder = ROOT / "examples" / "explain" / "no-device-matches"
    shown = promises(html(folder, *words_of(folder), "--trace", "gpu-1/gpu-0", "--verify").out).text()
    assert "Trace of " in shown and "Second opinion (cel-python)" in shown


def test_nothing_to_show(html: Html) -> None:
    ran = html(MIXED, "devices", "--snapshot", "cluster.yaml", "--node", "h100-1", "--driver", "gpu.amd.com")
    shown = promises(ran.out).text()
    assert ran.code == 1 and "No device matches: " in shown and "on node h100-1" in shown


def test_watching_is_no_page(html: Html) -> None:
    ran = html(MIXED, *words_of(MIXED), "--watch")
    assert ran.code == 2 and not ran.out and "--watch" in ran.err


def test_a_digest_that_is_wrong_is_seen() -> None:
    with pytest.raises(AssertionError):
        promises(page("x", [], ORIGIN).replace("</style>", " </style>"))


def test_a_page_says_when_and_from_what_it_was_made(html: Html) -> None:
    document = Document(page("x", [], ORIGIN))
    text = document.text()
    assert "from context prod, https://10.0.0.1:6443 · Kubernetes 1.36 · kubectl-dra " in text
    assert document.named("time")[0].attributes["datetime"] == "2026-01-02T03:04:05Z"
    for words in (words_of(MIXED), ["devices", "--snapshot", str(MIXED / "cluster.yaml")]):
        ran = html(MIXED, *words)
        assert "2026-01-02 03:04 UTC" in promises(ran.out).text()
        assert "from cluster.yaml · Kubernetes" in " ".join(Document(ran.out).text().split())
