"""TAB in real shells: bash, zsh and fish, with our scripts and through kubectl."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.completion.conftest import ROOT
from tests.terminal import Terminal

READY = "ready-1234"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "kubectl-dra.bash"),
    "zsh": (["zsh", "-f", "-i"], "_kubectl-dra"),
    "fish": (["fish", "--no-config", "-i"], "kubectl-dra.fish"),
}
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")


def start(shell: str, environment: dict[str, str], folder: Path, setup: str) -> Terminal:
    """A shell with a bare prompt in which the setup has run."""
    command, _ = SHELLS[shell]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {shell} on this machine")
    terminal = Terminal(command, columns=200, environment=environment, folder=folder)
    try:
        if shell == "zsh":
            setup = f"autoload -Uz compinit; compinit -u -d {folder}/.zcompdump; {setup}"
        # Two words, so that what is typed is not what is waited for.
        terminal.type(f"{setup}; echo ready'-1234'\n")
        terminal.until(f"\n{READY}")
    except BaseException:
        terminal.__exit__()
        raise
    return terminal


def completed(terminal: Terminal, line: str) -> str:
    """The words that the line has become after TAB, as a command would get them."""
    terminal.type(f"{line}\t")
    terminal.type("\x01printf '<%s>' \x05 end'-5678'; echo\n")
    return terminal.until(r"\n?((?:<[^<>\n]*>)+)<end-5678>")[1]


@pytest.fixture(params=[*SHELLS])
def own(request: pytest.FixtureRequest, environment: dict[str, str], tmp_path: Path) -> Iterator[Terminal]:
    """Each shell with the script from completions/, in a directory with files."""
    (tmp_path / "manifest-one.yaml").write_text("")
    (tmp_path / "overlays").mkdir()
    script = ROOT / "completions" / SHELLS[request.param][1]
    with start(request.param, environment, tmp_path, f"source {script}") as terminal:
        yield terminal


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kubectl-dra expl", "<kubectl-dra><explain>"),
        ("kubectl-dra explain --sna", "<kubectl-dra><explain><--snapshot>"),
        ("kubectl-dra explain -o ya", "<kubectl-dra><explain><-o><yaml>"),
        ("kubectl-dra explain --output=ya", "<kubectl-dra><explain><--output=yaml>"),
        ("kubectl-dra lint manif", "<kubectl-dra><lint><manifest-one.yaml>"),
        ("kubectl-dra lint --snapshot=manif", "<kubectl-dra><lint><--snapshot=manifest-one.yaml>"),
        ("kubectl-dra lint -k ov", "<kubectl-dra><lint><-k><overlays/>"),
        ("kubectl-dra explain --token manif", "<kubectl-dra><explain><--token><manif>"),
    ],
)
def test_our_scripts(own: Terminal, line: str, words: str) -> None:
    # zsh takes the slash after a directory back when a space follows.
    assert completed(own, line).replace("/>", ">") == words.replace("/>", ">")


def test_alternatives_are_listed(own: Terminal) -> None:
    own.type("kubectl-dra lint --fail-on \t\t")
    own.until(r"error.*info.*warning|error.*warning.*info")


def test_values_with_a_colon_and_from_a_snapshot(own: Terminal) -> None:
    snapshot = ROOT / "examples/explain/all-held/cluster.yaml"
    line = f"kubectl-dra explain --snapshot {snapshot} -n ml pod/"
    assert completed(own, line).startswith(f"<kubectl-dra><explain><--snapshot><{snapshot}><-n><ml><pod/")


@pytest.mark.parametrize("shell", [*SHELLS])
def test_through_kubectl(shell: str, environment: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine")
    setup = {
        "bash": f"source {BASH_COMPLETION}; source <(kubectl completion bash)",
        "zsh": "source <(kubectl completion zsh)",
        "fish": "kubectl completion fish | source",
    }[shell]
    if shell == "bash" and not BASH_COMPLETION.exists():
        pytest.skip("kubectl's bash completion needs the package bash-completion")
    with start(shell, environment, tmp_path, setup) as terminal:
        assert completed(terminal, "kubectl dra expl") == "<kubectl><dra><explain>"
    with start(shell, environment, tmp_path, setup) as terminal:
        assert completed(terminal, "kubectl dra explain --out") == "<kubectl><dra><explain><--output>"
    with start(shell, environment, tmp_path, setup) as terminal:
        assert completed(terminal, "kubectl dra explain -o ya") == "<kubectl><dra><explain><-o><yaml>"
