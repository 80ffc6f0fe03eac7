"""The image: what its file promises; and the built image, where a builder and the base images are."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kubectl_dra import __version__
from tests.packaging.toolbox import ROOT, checkout

pytestmark = pytest.mark.xdist_group("packaging")
EXAMPLE = ROOT / "examples" / "explain" / "no-device-matches"
# As OpenShift runs it: a user that /etc/passwd does not know, in the group of root.
ANY_USER = ("--user=1000650000:0",)
IMAGES = "KUBECTL_DRA_TEST_IMAGES"
"""``BUILD_IMAGE=... BASE_IMAGE=...`` to build with, where those of the file cannot be pulled."""


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_runs_without_root_and_without_a_shell() -> None:
    found = instructions()
    last = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    final = found[last:]
    assert ("USER", "65532:65532") in final
    assert not [rest for word, rest in final if word in ("RUN", "SHELL", "ADD")]
    for word in ("ENTRYPOINT", "CMD"):
        (form,) = [rest for kind, rest in final if kind == word]
        assert form.startswith("["), f"{word} in shell form needs a shell"
    # Python of the build stage and of Debian 12's distroless image: native modules are built for one version.
    arguments = dict(rest.split("=", 1) for word, rest in found if word == "ARG" and "IMAGE" in rest)
    assert "python:3.11" in arguments["BUILD_IMAGE"] and arguments["BASE_IMAGE"].endswith("python3-debian12:nonroot")
    ignored = (ROOT / ".containerignore").read_text().split()
    assert {".git", ".venv", "tests"} <= set(ignored)


def test_a_mounted_repository_is_not_imported(tmp_path: Path) -> None:
    variables = [word for kind, rest in instructions() if kind == "ENV" for word in rest.split()]
    environment = {**os.environ, **dict(word.split("=", 1) for word in variables), "PYTHONPATH": str(ROOT)}
    for name in ("yaml.py", "typer.py", "kubectl_dra.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the repository')\n")
    command = [sys.executable, "-m", "kubectl_dra", "version", "--client"]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    unsafe = {**environment, "PYTHONSAFEPATH": ""}
    seen = subprocess.run(command, cwd=tmp_path, env=unsafe, capture_output=True, text=True, check=False)
    assert "imported from the repository" in seen.stderr


def test_the_built_image_runs(request: pytest.FixtureRequest, tmp_path: Path, wheelhouse: Path) -> None:
    builder = next((name for name in ("podman", "buildah", "docker") if shutil.which(name)), None)
    images = os.environ.get(IMAGES, "").split()
    if builder is None or (not images and not os.environ.get("CI_PULLS_IMAGES")):
        pytest.skip(f"no builder of images, or no base images here: name them in {IMAGES}, or set CI_PULLS_IMAGES=1")
    context = checkout(tmp_path / "context")
    shutil.copytree(wheelhouse, context / "wheels")
    arguments = [f"--build-arg={text}" for text in (*images, "WHEELS=wheels", "PIP_NO_INDEX=1")]
    command = [builder, "build", *arguments, "-f", "Containerfile", "-t", "kubectl-dra-test", "."]
    built = subprocess.run(command, cwd=context, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    container = "kubectl-dra-test-container"
    if builder == "buildah":
        subprocess.run(["buildah", "from", "--name", container, "kubectl-dra-test"], capture_output=True, check=True)
        request.addfinalizer(lambda: subprocess.run(["buildah", "rm", container], capture_output=True, check=True))
        run = ["buildah", "run", f"--volume={EXAMPLE}:/work:ro", *ANY_USER, container, "--"]
        run += ["/usr/bin/python3", "-m", "kubectl_dra"]
    else:
        run = [builder, "run", "--rm", "--read-only", "--network=none", f"--volume={EXAMPLE}:/work:ro", *ANY_USER]
        run += ["kubectl-dra-test"]

    def inside(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*run, *words], capture_output=True, text=True, check=False)

    done = inside("--version")
    assert done.stdout == f"kubectl-dra {__version__}\n", done.stderr
    done = inside(*shlex.split((EXAMPLE / "command").read_text())[2:])
    assert done.returncode == 1 and "selector-matches-nothing" in done.stdout, done.stdout + done.stderr
    (cluster,) = EXAMPLE.glob("cluster.*")
    done = inside("metrics", "--snapshot", cluster.name)
    assert done.returncode == 0 and "# TYPE kubectl_dra_devices gauge" in done.stdout, done.stdout + done.stderr
    done = inside("explain", "pod/x")
    assert done.returncode == 2 and "there is no kubeconfig" in done.stderr, done.stdout + done.stderr
