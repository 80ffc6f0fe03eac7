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
    ChangePage(
        RESTORED,
        "claims-to-plugin",
        "safe",
        "The claim becomes a request of the device plugin again",
        "Before anything is changed, what `--reverse` writes is migrated forward again. Only if exactly the "
        "existing claims come out did migrate make them, and the request is put back.",
        "resources:\n  claims:\n  - name: gpu\n    request: gpu\n",
        "resources:\n  limits:\n    nvidia.com/gpu: 2\n",
    ),
    ChangePage(
        REMOVED,
        "claim-object-removed",
        "safe",
        "The claim or its template is removed",
        "No workload among the files refers to it any more. Running pods keep their claims: delete the object in the "
        "cluster only after the last of them is gone.",
    ),
    ChangePage(
        QUOTA,
        "quota-key-removed",
        "safe",
        "The quota counts no claims any more",
        "The key stands beside that of the device plugin's resource with the number that migrate gave it.",
        'hard:\n  requests.nvidia.com/gpu: "8"\n  gpu.nvidia.com.deviceclass.resource.k8s.io/devices: "8"\n',
        'hard:\n  requests.nvidia.com/gpu: "8"\n',
    ),
    ChangePage(
        TOLERATION,
        "toleration-may-go",
        "unsafe",
        "The toleration of the device's taint may be removed",
        "migrate adds a toleration that an admission plugin may have added before. It looks like one written by "
        "hand, and without it a pod may no longer run where it ran, so it stays unless `--unsafe` removes it.",
    ),
    ChangePage(
        LOST,
        "not-restored",
        "note",
        "What migrate removed does not come back",
        "Labels that the claim implied, such as nvidia.com/gpu.present, and variables and annotations that a "
        "claim must not have are not stored anywhere; a pod with the device plugin's resource works without them "
        "too. Nor is it stored whether the resource was also under requests: a limit alone means the same.",
    ),
    ChangePage(
        NOT_OURS,
        "not-made-by-migrate",
        "refusal",
        "migrate did not make this claim",
        "Migrating the restored workload again gives a different claim than the existing one. Somebody wrote or "
        "changed it by hand, and it says something that a resource count cannot say.",
    ),
    ChangePage(
        NO_RESOURCE,
        "no-resource-for-claim",
        "refusal",
        "No single device-plugin resource is meant",
        "The class, selectors or capacity of a request do not tell which resource it was made from, or a selector "
        "cannot be traced back to one node label, or the claim is for all devices of a node and no label of the pod "
        "says how many these are.",
    ),
    ChangePage(
        NO_TEMPLATE,
        "claim-not-read",
        "refusal",
        "The claim or template is not among the files",
        "Only its claim says what the pod asked for. Also name the file that contains it.",
    ),
    ChangePage(
        STILL_USED,
        "claim-object-stays",
        "note",
        "The claim or its template stays",
        "It cannot be removed from its place without losing something else.",
    ),
)
