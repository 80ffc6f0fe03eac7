"""ResourceQuota: its keys, of which some count devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubectl_dra.api.quantity import Quantity
from kubectl_dra.lint.server.context import Context
from kubectl_dra.lint.server.metadata import check_generation, check_metadata
from kubectl_dra.lint.server.model import INVALID, Key, Violations, struct, violation
from kubectl_dra.lint.server.names import subdomain_problems
from kubectl_dra.lint.server.resources import amount_problems, quota_key_problems


def check_quota(quota: Mapping[str, Any], context: Context) -> Violations:
    """A ResourceQuota to be created. Scopes are not checked."""
    yield from check_metadata(quota.get("metadata"), subdomain_problems, namespaced=True)
    yield from check_generation(quota.get("metadata"))
    for name, value in (struct(quota, "spec").get("hard") or {}).items():
        at = ("spec", "hard", Key(name))
        for problem in quota_key_problems(name):
            yield violation(at, INVALID, "quota-key", problem)
        for problem in amount_problems(name, Quantity.from_json(value)):
            yield violation(at, INVALID, "quota-amount", problem)
