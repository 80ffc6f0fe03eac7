"""What is known of custom kinds: each fact with its source, and every kind whose pods are found."""

from __future__ import annotations

import re

import pytest

from kubectl_dra.data.workload_kinds import WorkloadKind, workload_kind, workload_kinds
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES

ROWS = list({id(row): row for rows in workload_kinds().values() for row in rows}.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kinds[0])
def test_each_row_names_repository_file_and_version(row: WorkloadKind) -> None:
    assert re.fullmatch(r"[\w.-]+/[\w.-]+:[\w./-]+\.(yaml|go|tpl|py)@[\w./-]+", row.source)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kinds[0])
def test_who_loses_claims_says_why_and_what_to_do(row: WorkloadKind) -> None:
    assert bool(row.why) == bool(row.way_out)
    assert row.why or not row.loses
    assert set(row.loses) <= {"resourceClaims", "claims"}


@pytest.mark.parametrize("key", sorted({*TEMPLATES, *SPECS}), ids="/".join)
def test_every_custom_kind_whose_pods_are_found_has_a_row(key: tuple[str, str]) -> None:
    assert ("." in key[0]) == (key in workload_kinds())


@pytest.mark.parametrize("key", workload_kinds(), ids="/".join)
def test_the_last_row_of_a_kind_is_for_all_versions_and_modes(key: tuple[str, str]) -> None:
    *others, last = workload_kinds()[key]
    assert not last.versions
    assert not last.modes
    assert all(row.versions or row.modes for row in others)
    assert workload_kind(*key, "v9", "") is last


def test_version_and_mode_choose_the_row() -> None:
    def source(group: str, kind: str, version: str, mode: str) -> str:
        row = workload_kind(group, kind, version, mode)
        assert row is not None
        return row.source.partition(":")[0]

    assert source("kubeflow.org", "MPIJob", "v1", "") == "kubeflow/trainer"
    assert source("kubeflow.org", "MPIJob", "v2beta1", "") == "kubeflow/mpi-operator"
    assert source("serving.kserve.io", "InferenceService", "v1beta1", "Knative") == "knative/serving"
    assert source("serving.kserve.io", "InferenceService", "v1beta1", "ModelMesh") == "kserve/modelmesh-serving"
    assert source("serving.kserve.io", "InferenceService", "v1beta1", "Standard") == "kserve/kserve"
    assert workload_kind("apps", "Deployment", "v1", "") is None
    assert workload_kind("", "Service", "v1", "") is None
