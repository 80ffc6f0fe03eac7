"""`kubectl dra lint` beside kubeconform: `python -m tools.benchmarks.lint [--kubeconform PROGRAM]`.

Writes the 2,600 manifests of the corpus as files, and checks them with both programs in turns: kubeconform with the
strict schemas that a real API server published (``schemas/kubernetes``). Prints the least wall and CPU time of several
runs, their ratio, and the CPU time of linting one file. kubeconform is built with Go if it is not named.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from functools import reduce
from pathlib import Path

import yaml

from tools.benchmarks.explain import Measured, measured

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "conformance" / "data" / "manifests.jsonl.gz"
SCHEMAS = ROOT / "schemas" / "kubernetes" / "1.36"
PROGRAM = "github.com/yannh/kubeconform/cmd/kubeconform@latest"
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"


def write(directory: Path) -> list[Path]:
    """The manifests of the corpus, each a file."""
    directory.mkdir()
    files = []
    with gzip.open(CORPUS, "rt") as stream:
        for number, line in enumerate(stream):
            files.append(directory / f"{number:04}.yaml")
            files[-1].write_text(yaml.safe_dump(json.loads(line)["manifest"], sort_keys=False))
    return files


def link_schemas(directory: Path) -> str:
    """Links to the schemas by the names that kubeconform looks for; returns where they are."""
    directory.mkdir()
    for schema in SCHEMAS.glob("*.json"):
        group, version, kind = schema.stem.rsplit("_", 2)
        suffix = version if group == "core" else f"{group.partition('.')[0]}-{version}"
        (directory / f"{kind.lower()}-{suffix}.json").symlink_to(schema)
    return f"{directory}/{LOCATION}"


def built(directory: Path) -> str:
    """kubeconform, built into a directory. Raises CalledProcessError."""
    subprocess.run(("go", "install", PROGRAM), env={**os.environ, "GOBIN": str(directory)}, check=True)
    return str(directory / "kubeconform")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconform", default="", help="the program, if it is there already")
    parser.add_argument("--times", type=int, default=5, help="runs, of which the least counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as name:
        place = Path(name)
        files = write(place / "manifests")
        schemas = link_schemas(place / "schemas")
        program = options.kubeconform or built(place / "bin")
        lint = (sys.executable, "-m", "kubectl_dra", "lint", "--no-config")
        commands: dict[str, tuple[str, ...]] = {
            "lint": (*lint, str(place / "manifests")),
            "lint -o json": (*lint, "-o", "json", str(place / "manifests")),
            "kubeconform": (program, "-strict", "-schema-location", schemas, str(place / "manifests")),
            "lint, one file": (*lint, str(files[1])),
        }
        best: dict[str, Measured] = {}
        for _ in range(options.times):
            for title, command in commands.items():
                one = measured(*command)
                best[title] = reduce(Measured.least, (best[title], one)) if title in best else one
    missing = best["kubeconform"].output.count("could not find schema")
    if missing:
        raise SystemExit(f"kubeconform has no schema for {missing} files")
    other = best["kubeconform"]
    print(f"{len(files):,} files\n\n| | wall s | CPU s | peak MB | CPU ratio |\n|---|---|---|---|---|")
    for title, one in best.items():
        print(f"| {title} | {one.wall:.2f} | {one.cpu:.2f} | {one.megabytes} | {one.cpu / other.cpu:.2f} |")


if __name__ == "__main__":
    main()
