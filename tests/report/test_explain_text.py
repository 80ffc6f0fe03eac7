"""How the text report behaves on terminals and pipes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from kubectl_dra.cli.main import run
from kubectl_dra.report.color import PIPE_WIDTH, Painter, wrap
from tools.examples import EXAMPLES, arguments, examples


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "color", "environment", "colored"),
    [
        (io.StringIO, "auto", {}, False),
        (Terminal, "auto", {}, True),
        (Terminal, "auto", {"NO_COLOR": "1"}, False),
        (Terminal, "auto", {"TERM": "dumb"}, False),
        (io.StringIO, "auto", {"FORCE_COLOR": "1"}, True),
        (io.StringIO, "auto", {"CLICOLOR_FORCE": "1"}, True),
        (io.StringIO, "auto", {"CLICOLOR_FORCE": "0"}, False),
        (io.StringIO, "auto", {"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, False),
        (io.StringIO, "always", {"NO_COLOR": "1"}, True),
        (Terminal, "never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_only_where_it_is_wanted(
    stream: type[io.StringIO], color: str, environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    out = stream()
    Painter(out, color).write("a ", ("b", "red"))
    assert ("\x1b[" in out.getvalue()) is colored
    assert out.getvalue().endswith("\n")


def test_lines_are_wrapped_and_never_cut() -> None:
    word = "x" * 300
    assert wrap(f"a {word} b", 40) == ["a", word, "b"]
    assert wrap("", 40) == [""]


@pytest.mark.parametrize("folder", examples(), ids=lambda folder: folder.name)
def test_goldens_fit_the_width_unless_one_word_does_not(folder: Path) -> None:
    for line in (folder / "full.txt").read_text().splitlines():
        assert line == line.rstrip()
        if len(line) > PIPE_WIDTH:
            assert " " not in line.strip() or "kubectl " in line, line


def explained(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """The answer about the pending pod of an example, with further flags."""
    folder = EXAMPLES / "no-device-matches"
    snapshot = str(folder / "cluster.yaml")
    words = [snapshot if word == "cluster.yaml" else word for word in arguments(folder)]
    assert run([*words, "--full", *flags]) in (0, 1)
    return capsys.readouterr().out


def test_very_many_terms_become_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A selector of a thousand terms does not bury the one that refuses the devices."""
    harmless = " && ".join(f"device.driver != 'd{number}.example.com'" for number in range(1000))
    text = explained(capsys, "--what-if", f"selector={harmless} && device.driver == 'nobody.example.com'")
    assert "selectors[0]: 1,000 terms that refuse nothing" in text
    assert "selectors[0], term 1001 of 1001: device.driver == 'nobody.example.com'" in text
    supposed = text[text.index("- supposed:") :].partition("\n\nNext: ")[0]
    assert len(supposed) < 1000
    assert "… (all of it with" in " ".join(supposed.split())


def test_gates_that_are_not_as_by_default_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    gates = "DRAPrioritizedList=false,DRADeviceTaintRules=true"
    text = " ".join(explained(capsys, "--kubernetes-version", "1.36", "--feature-gates", gates).split())
    assert "default feature gates but DRADeviceTaintRules on, DRAPrioritizedList off (--kubernetes-version)" in text
    assert "default feature gates (--kubernetes-version)" in " ".join(
        explained(capsys, "--kubernetes-version", "1.36").split()
    )


def test_a_selector_that_does_not_compile_is_quoted_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By its cause; besides, what the scheduler would say quotes it in words of its own."""
    request = {"deviceClassName": "gpu.nvidia.com", "selectors": [{"cel": {"expression": "device.driver >"}}]}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "bad", "namespace": "ml"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}},
    }
    cluster = yaml.safe_load((EXAMPLES / "no-device-matches" / "cluster.yaml").read_text())
    cluster["items"].append(claim)
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))
    assert run(["explain", "claim/bad", "-n", "ml", "--snapshot", str(tmp_path / "cluster.json"), "--full"]) == 1
    told = capsys.readouterr().out
    assert told.count("Syntax error") == 1 and "it does not compile" in told, (
        "the scheduler's words are Kubernetes' own"
    )
    assert "does not compile: the expression ends where a value is expected" in " ".join(told.split())
