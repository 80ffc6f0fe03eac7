#!/bin/sh
# Any CI with a shell and Python 3.11: checks the manifests below $1, writes kubectl-dra.sarif and kubectl-dra.xml (JUnit),
# and ends with the exit code of lint: 0 clean, 1 findings, 2 could not be run.
set -eu
manifests=${1:-manifests}
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -I -m venv "$tools"
"$tools/bin/python" -I -m pip install --quiet "${KUBECTL_DRA:-kubectl-dra}"
"$tools/bin/kubectl-dra" lint --allow-empty -o sarif "$manifests" > kubectl-dra.sarif || true
"$tools/bin/kubectl-dra" lint --allow-empty -o junit "$manifests" > kubectl-dra.xml || true
"$tools/bin/kubectl-dra" lint --allow-empty "$manifests"
