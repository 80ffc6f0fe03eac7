"""Waiting until devices are free."""

from __future__ import annotations

import pytest

from kubectl_dra.errors import ClusterError
from kubectl_dra.taint import wait_until_drained


def test_a_claim_that_no_server_stores_is_an_error_of_the_server() -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": "c", "capacity": {"requests": {"memory": "zz"}}}}
    raw = {"metadata": {"name": "a", "namespace": "ml"}, "spec": {"devices": {"requests": [request]}}}
    with pytest.raises(ClusterError, match="ResourceClaim ml/a that cannot be read"):
        wait_until_drained._claim(raw)
