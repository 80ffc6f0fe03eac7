"""ResourcePoolStatusRequest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubectl_dra.admission.server.context import ServerContext
from kubectl_dra.admission.server.metadata import check_generation, check_metadata
from kubectl_dra.admission.server.model import INVALID, Violations, missing, struct, text, violation
from kubectl_dra.admission.server.names import check_format, check_fully_qualified, check_length, subdomain_problems
from kubectl_dra.api.limits import MAX_POOL

LIMIT_MAX: Final = 1000


def check_pool_request(request: Mapping[str, Any], context: ServerContext) -> Violations:
    """A ResourcePoolStatusRequest to be created; its status does not matter then."""
    yield from check_metadata(request.get("metadata"), subdomain_problems, namespaced=False, context=context)
    yield from check_generation(request.get("metadata"))
    spec = struct(request, "spec")
    driver, pool, limit = text(spec, "driver"), spec.get("poolName"), spec.get("limit")
    if not driver:
        yield missing(("spec", "driver"), "pool-request-driver")
    else:
        # Compared without regard to case, for which these two count as letters.
        folded = driver.translate({0x212A: "k", 0x17F: "s"})
        for problem in subdomain_problems(folded.lower() if folded.isascii() else folded):
            yield violation(("spec", "driver"), INVALID, "pool-request-driver", f"{driver!r} {problem}")
    if pool is not None:
        yield from check_length(pool, ("spec", "poolName"), MAX_POOL, "pool-request-pool")
        for part in pool.split("/"):
            yield from check_format(part, ("spec", "poolName"), "pool-request-pool", subdomain_problems)
    if limit is not None and not 1 <= limit <= LIMIT_MAX:
        message = f"must be from 1 to {LIMIT_MAX}, not {limit}"
        yield violation(("spec", "limit"), INVALID, "pool-request-limit", message)
    attribute = spec.get("defaultPartitionTypeAttribute")
    if attribute is not None and context.on("DRAPartitionableDevicesType"):
        at, rules = ("spec", "defaultPartitionTypeAttribute"), ("pool-request-attribute",) * 2
        yield from check_fully_qualified(attribute, at, rules, release=context.release)
