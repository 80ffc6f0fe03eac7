"""The documentation of the codes about device plugins and their surroundings."""

from __future__ import annotations

from typing import Final

from kubectl_dra.migrate.model import ChangePage

_CHANGES: Final = (
    ChangePage("MIG101", "claim-for-devices", "safe"),
    ChangePage("MIG102", "zero-devices", "safe"),
    ChangePage("MIG103", "claim-template", "safe"),
    ChangePage("MIG104", "shared-claim", "unsafe"),
    ChangePage("MIG105", "device-class-for-resource", "safe"),
)

_REFUSALS: Final = (
    ChangePage("MIG109", "patch-without-request", "safe"),
    ChangePage("MIG110", "claim-patched", "safe"),
    ChangePage("MIG127", "claims-of-an-overlay", "safe"),
    ChangePage("MIG140", "node-pool-limit", "note"),
    ChangePage("MIG139", "names-followed", "safe"),
    ChangePage("MIG111", "unknown-resource", "refusal"),
    ChangePage("MIG112", "needs-an-answer", "refusal"),
    ChangePage("MIG113", "no-device-for-it", "refusal"),
    ChangePage("MIG114", "no-number-of-devices", "refusal"),
    ChangePage("MIG115", "request-and-limit", "refusal"),
    ChangePage("MIG116", "placement-not-translated", "refusal"),
    ChangePage("MIG117", "no-name", "refusal"),
    ChangePage("MIG118", "vendor-in-part", "refusal"),
    ChangePage("MIG119", "not-to-be-shared", "refusal"),
    ChangePage("MIG120", "kind-without-claims", "refusal"),
    ChangePage("MIG121", "unknown-kind", "refusal"),
    ChangePage("MIG124", "claim-beside-resource", "refusal"),
    ChangePage("MIG125", "not-a-list", "refusal"),
    ChangePage("MIG122", "no-class-for-resource", "refusal"),
)

_NOTES: Final = (
    ChangePage("MIG141", "autoscaler", "note"),
    ChangePage("MIG142", "no-preemption-for-devices", "note"),
    ChangePage("MIG143", "device-was-shared", "note"),
    ChangePage("MIG106", "class-has-the-name", "note"),
    ChangePage("MIG107", "toleration-written-out", "note"),
    ChangePage("MIG108", "pods-share-devices", "note"),
    ChangePage("MIG123", "manifest-in-text", "note"),
    ChangePage("MIG126", "named-elsewhere", "note"),
    ChangePage("MIG130", "vendor-advice", "note"),
    ChangePage("MIG131", "label-stays", "note"),
    ChangePage("MIG132", "needs-newer-controller", "note"),
    ChangePage("MIG133", "claims-and-plugins", "note"),
    ChangePage("MIG134", "controller-needs-telling", "note"),
    ChangePage("MIG135", "template-in-each-namespace", "note"),
    ChangePage("MIG136", "queue-must-map-classes", "note"),
    ChangePage("MIG137", "generated-name", "note"),
    ChangePage("MIG138", "needs-gate", "note"),
)

_BESIDE: Final = (
    ChangePage("MIG401", "environment-variable", "note"),
    ChangePage("MIG402", "runtime-class", "note"),
    ChangePage("MIG403", "annotation", "note"),
    ChangePage("MIG404", "devices-past-the-claim", "note"),
    ChangePage("MIG405", "scheduler-name", "note"),
)

ABOUT: Final = (*_CHANGES, *_REFUSALS, *_NOTES, *_BESIDE)
"""Pages of MIG1xx and MIG4xx."""
