"""``kubectl dra ui`` as a command: on a real terminal, without one, without Textual, and with bad input."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubectl_dra.cli.flags import UiFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.ui import LiveCluster
from kubectl_dra.errors import DraError
from tests.cli.conftest import Ran
from tests.taint.world import claim, device_class, gpu, node, pod, result, slice_of
from tests.terminal import Terminal
from tools.api_server import Answer, APIServer, Asked, forbidden
from tools.screen import EXAMPLES, before

Dra = Callable[..., Ran]
SAVED = EXAMPLES / "no-device-matches" / "cluster.yaml"
ROOT = "/apis/resource.k8s.io/v1"


def run(*words: str, **environment: str) -> Terminal:
    """The command on a terminal."""
    return Terminal([sys.executable, "-m", "kubectl_dra", "ui", *words], columns=100, environment=environment)


def test_without_a_terminal(dra: Dra) -> None:
    ran = dra("ui", "--snapshot", str(SAVED))
    assert ran.code == 2 and ran.err.startswith("error: ui needs a terminal") and ran.err.count("\n") == 1


INSTALLED = {
    "pipx": ({"pipx_metadata.json": "{}"}, "run: pipx inject kubectl-dra {package}"),
    "uv tool": ({"uv-receipt.toml": "[tool]"}, "run: uv pip install --python {python} {package}"),
    "a venv of uv": (
        {"pyvenv.cfg": "home = /usr/bin\nuv = 0.9.0\n"},
        "run: uv pip install --python {python} {package}",
    ),
    "an image": ({"pyvenv.cfg": "home = /usr/bin\n"}, "the program that needs no Python has it inside: https://"),
    "pip": ({"pyvenv.cfg": "home = /usr/bin\nuv = 0.9.0\n", "pip": ""}, "run: {python} -m pip install {package}"),
    "one file": ({"pip": "", "archive": ""}, "run: {python} -m venv {own} && {own}/bin/pip install {package} && "),
}
"""What is there by each way of installing, and what is to be run."""


@pytest.mark.parametrize(("command", "package"), [("ui", "textual"), ("lsp", "pygls")])
@pytest.mark.parametrize("way", INSTALLED)
def test_without_its_package(
    dra: Dra, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, way: str, command: str, package: str
) -> None:
    files, told = INSTALLED[way]
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path) if way == "one file" else "/usr")
    monkeypatch.setenv("HOME", str(tmp_path / "my home"))
    if "archive" in files:
        monkeypatch.setenv("KUBECTL_DRA_ARCHIVE", "/opt/kubectl-dra.pyz")
    spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: ("pip" in files or None) if name == "pip" else spec(name)
    )
    for module in (package, f"{package}.lsp.server"):
        monkeypatch.setitem(sys.modules, module, None)
    ran = dra(command)
    said = told.format(python=sys.executable, package=package, own=f"'{tmp_path}/my home/.kubectl-dra'")
    assert ran.code == 2 and ran.err.startswith(f"error: {command} needs {package}, which is not installed; {said}")
    assert ran.err.endswith(f"/bin/python /opt/kubectl-dra.pyz {command}\n") is (way == "one file")


def test_on_a_terminal() -> None:
    with run("--snapshot", str(SAVED), NO_COLOR="1") as terminal:
        terminal.until(r"saved")
        terminal.until(r"devices on \d+ node")
        terminal.type("q")
        assert terminal.end() == 0
        # It leaves the terminal as it was: the usual screen, with its cursor.
        assert terminal.raw.rindex(b"\x1b[?1049l") > terminal.raw.rindex(b"\x1b[?1049h")
        assert terminal.raw.rindex(b"\x1b[?25h") > terminal.raw.rindex(b"\x1b[?25l")
        colours = [code for codes in re.findall(rb"\x1b\[([0-9;]*)m", terminal.raw) for code in codes.split(b";")]
        assert not {*colours} & {b"%d" % code for code in (*range(30, 39), *range(40, 49), *range(90, 108))}


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [("\x03", 130), (signal.SIGTERM, 143)])
def test_it_can_be_interrupted(sent: str | int, code: int) -> None:
    with run("--snapshot", str(SAVED)) as terminal:
        terminal.until(r"saved")
        if isinstance(sent, str):
            terminal.type(sent)
        else:
            os.kill(terminal._process.pid, sent)
        assert terminal.end() == code
        assert terminal.raw.rindex(b"\x1b[?1049l") > terminal.raw.rindex(b"\x1b[?1049h")


def test_bad_input_says_what_other_commands_say(dra: Dra, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"apiVersion": "v1", "kind": "List", "items": [}')
    words = ("--snapshot", str(tmp_path / "broken.json"))
    said = dra("devices", *words)
    with run(*words) as terminal:
        assert terminal.end() == said.code == 2
        assert "".join(said.err.split()) in "".join(terminal.text.split())


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    kinds = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "devicetaintrules")
    started.serve_group(v1=kinds)
    started.routes["/version"] = {"gitVersion": "v1.35.8"}
    empty = [f"{ROOT}/{kind}" for kind in kinds]
    empty += [f"/api/v1/{kind}" for kind in ("pods", "nodes", "namespaces", "resourcequotas", "events")]
    for path in empty:
        started.routes[path] = listed()
    yield started
    started.close()


def listed(*items: object) -> Callable[[Asked], Answer]:
    """A collection that may not be watched."""

    def answer(asked: Asked) -> Answer:
        if "watch" in asked.query:
            return forbidden("it")
        return Answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})

    return answer


def live(server: APIServer, folder: Path) -> LiveCluster:
    return LiveCluster(UiFlags(), ConnectionFlags(kubeconfig=server.kubeconfig(folder)))


async def test_slices_that_may_not_be_read(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    server.routes[f"{ROOT}/resourceslices"] = forbidden("resourceslices.resource.k8s.io")
    said = dra("devices", "--kubeconfig", server.kubeconfig(tmp_path))
    async with before(live(server, tmp_path)) as person:
        await person.until(lambda: person.screens.failure is not None)
    assert isinstance(person.screens.failure, DraError)
    assert f"error: {person.screens.failure}\n" == said.err


async def test_another_namespace_is_watched_and_objects_are_described(server: APIServer, tmp_path: Path) -> None:
    other = claim("d")
    other["metadata"]["namespace"] = "other"
    server.routes |= {
        f"{ROOT}/resourceslices": listed(slice_of("n1", gpu("gpu-0"))),
        f"{ROOT}/deviceclasses": listed(device_class()),
        f"{ROOT}/resourceclaims": listed(claim("c"), other),
        f"{ROOT}/namespaces/other/resourceclaims/d": {**other, "metadata": {**other["metadata"], "labels": {"a": "b"}}},
        "/api/v1/nodes": listed(node("n1")),
    }
    async with before(live(server, tmp_path), 100, 40) as person:
        await person.sees("3 Claims 2")
        await person.press(":", *"claims other", "enter")
        await person.sees("[3 Claims 1]")
        await person.press("d")
        await person.sees("ResourceClaim other/d", "a: b")
        watched = f"{ROOT}/namespaces/other/resourceclaims"
        await person.until(lambda: watched in server.paths(), "the watch")


async def test_a_device_is_tainted_after_a_yes(server: APIServer, tmp_path: Path) -> None:
    """By taint itself: the plan first, a rule after ``y``, and nothing after Esc."""
    server.routes |= {
        f"{ROOT}/resourceslices": listed(slice_of("n1", gpu("gpu-0"), gpu("gpu-1"))),
        f"{ROOT}/deviceclasses": listed(device_class()),
        f"{ROOT}/resourceclaims": listed(claim("c", result("gpu-0"), pods=("p",))),
        "/api/v1/pods": listed(pod("p", "c")),
        "/api/v1/nodes": listed(node("n1")),
    }
    written: list[str] = []
    others = server.answer

    def answer(asked: Asked) -> Answer:
        if asked.method == "GET":
            return others(asked)
        written.append(f"{asked.method} {asked.path.rpartition('/')[0]}")
        name = asked.path.rpartition("/")[2]
        rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule"}
        spec = {"deviceSelector": {}, "taint": {"key": "maintenance", "effect": "NoSchedule"}}
        return Answer(201, {**rule, "metadata": {"name": name, "uid": "u", "resourceVersion": "2"}, "spec": spec})

    server.answer = answer  # type: ignore[method-assign]
    async with before(live(server, tmp_path), 100, 40) as person:
        await person.sees("2 devices on 1 node")
        await person.press("4", "enter")
        await person.sees("Held by 1 claim")
        for last in ("escape", "y"):
            await person.press("t")
            await person.sees("Taint maintenance:NoSchedule")
            await person.press("enter", *"ECC", "enter")
            await person.sees("maintenance:NoSchedule on 1 device", "team/p", "Nothing is written yet.")
            assert not written
            await person.press(last)
        await person.until(lambda: bool(written))
        await person.sees("Done. Esc: back", "created")
    assert written == [f"PATCH {ROOT}/devicetaintrules"]
