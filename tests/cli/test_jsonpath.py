"""``-o jsonpath=`` means what it means to kubectl, which is asked where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_dra.cli.jsonpath import taken_out
from kubectl_dra.errors import UsageError
from kubectl_dra.report.jsonpath import filled, template
from tests.cli.conftest import Dra

KUBECTL: Final = shutil.which("kubectl")
FLEET: Final = ("--snapshot", str(Path(__file__).parents[2] / "examples" / "explain" / "mixed-fleet" / "cluster.yaml"))
CONFIG: Final[dict[str, Any]] = {
    "kind": "Config",
    "apiVersion": "v1",
    "preferences": {},
    "clusters": [
        # kubectl sorts its own configuration by name.
        {"name": "dev", "cluster": {"server": "https://dev:6443"}},
        {"name": "prod", "cluster": {"server": "https://prod:6443"}},
        {"name": "test", "cluster": {"server": "https://test:6443", "tls-server-name": "t"}},
    ],
    "users": [{"name": "a", "user": {"username": "anna"}}],
    "contexts": [
        {"name": "one", "context": {"cluster": "prod", "user": "a", "namespace": "ml"}},
        {"name": "two", "context": {"cluster": "test", "user": "a"}},
    ],
    "current-context": "one",
}
TEMPLATES: Final = (
    "{.kind}",
    "{$.kind} of {.apiVersion}",
    "{.clusters[0].name}",
    "{.clusters[-1].name}",
    "{.clusters[*].name}",
    "{.clusters[0:2].name}",
    "{.clusters[0,2].name}",
    "{.clusters[*].cluster.tls-server-name}",
    "{.nothing.at.all}",
    "{['current-context']}",
    "{.clusters[?(@.name=='test')].cluster.server}",
    '{.clusters[?(@.name == "test")].cluster.server}',
    "{.clusters[?(@.name!='test')].name}",
    "{.clusters[?(@.cluster.tls-server-name)].name}",
    '{range .clusters[*]}{.name}{"\\t"}{.cluster.server}{"\\n"}{end}',
    '{range .contexts[*]}{.context.cluster}: {.context.namespace}{"\\n"}{end}done',
    "{..server}",
    "{.contexts[0].context}",
    "plain text",
    "{'quoted'}",
)


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
@pytest.mark.parametrize("text", TEMPLATES)
def test_it_means_what_kubectl_means(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(CONFIG))
    assert KUBECTL is not None
    command = [KUBECTL, "config", "view", "--kubeconfig", str(path), "-o", f"jsonpath={text}"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert filled(template(text), CONFIG) == said


def test_numbers_are_compared() -> None:
    rows = {"items": [{"free": 3, "ok": True}, {"free": 12, "ok": False}]}
    assert filled(template("{.items[?(@.free>3)].free} {.items[?(@.ok==true)].free}"), rows) == "12 3"


@pytest.mark.parametrize(
    "text", ["{", "{.a", "{range .a}", "{end}", "{.a[x]}", "{.a[?(x)]}", "{.a[?(@.b==c)]}", "{.a b}", "{.a" * 9000]
)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="-o jsonpath="):
        template(text)


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["top", "-o", "jsonpath={.a}"], ["top", "-o", "json"]),
        (["top", "-ojsonpath={.a}"], ["top", "-o", "json"]),
        (["top", "--output=jsonpath={.a}", "x"], ["top", "-o", "json", "x"]),
        (["top", "--output", "jsonpath={.a}"], ["top", "--output", "json"]),
    ],
)
def test_where_it_stands(words: list[str], rest: list[str]) -> None:
    assert taken_out(words) == (rest, "{.a}")


def test_what_only_looks_like_it() -> None:
    words = ["explain", "jsonpath={.a}", "--", "-o", "jsonpath={.b}"]
    assert taken_out(words) == (words, None)


def test_lists_take_it(dra: Dra) -> None:
    ran = dra("claims", *FLEET, "-o", 'jsonpath={range .items[*]}{.name} {.state}{"\\n"}{end}')
    assert ran.code == 0 and "serve-0-accelerator-n5b9k pending\n" in ran.out and len(ran.out.splitlines()) == 3
    assert dra("top", *FLEET, "-o", "jsonpath={.summary.devices}").out == "46"
    ran = dra("explain", "pod/serve-0", "-n", "ml", *FLEET, "-o", "jsonpath={.verdict}")
    assert ran.code == dra("explain", "pod/serve-0", "-n", "ml", *FLEET).code == 1 and ran.out


def test_errors_stay(dra: Dra) -> None:
    assert dra("top", *FLEET, "-o", "jsonpath={.a").code == 2
    ran = dra("claims", "--snapshot", "missing.yaml", "-o", "jsonpath={.a}")
    assert ran.code == 2 and "missing.yaml" in ran.err and not ran.out


def test_without_a_template_it_says_how(dra: Dra) -> None:
    for words in (("-o", "jsonpath"), ("-ojsonpath",), ("--output=jsonpath=",)):
        ran = dra("claims", *FLEET, *words)
        assert (ran.code, ran.out) == (2, "") and "-o jsonpath needs a template" in ran.err
