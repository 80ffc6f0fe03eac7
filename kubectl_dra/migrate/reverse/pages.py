"""The documentation of the codes of ``migrate --reverse``."""

from __future__ import annotations

from typing import Final

from kubectl_dra.migrate.model import ChangePage

RESTORED: Final = "MIG501"
REMOVED: Final = "MIG502"
QUOTA: Final = "MIG503"
TOLERATION: Final = "MIG504"
LOST: Final = "MIG505"
NOT_OURS: Final = "MIG511"
NO_RESOURCE: Final = "MIG512"
NO_TEMPLATE: Final = "MIG513"
STILL_USED: Final = "MIG514"

ABOUT: Final = (
    ChangePage(RESTORED, "claims-to-plugin", "safe"),
    ChangePage(REMOVED, "claim-object-removed", "safe"),
    ChangePage(QUOTA, "quota-key-removed", "safe"),
    ChangePage(TOLERATION, "toleration-may-go", "unsafe"),
    ChangePage(LOST, "not-restored", "note"),
    ChangePage(NOT_OURS, "not-made-by-migrate", "refusal"),
    ChangePage(NO_RESOURCE, "no-resource-for-claim", "refusal"),
    ChangePage(NO_TEMPLATE, "claim-not-read", "refusal"),
    ChangePage(STILL_USED, "claim-object-stays", "note"),
)
