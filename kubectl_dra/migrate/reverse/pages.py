"""The pages of the codes of ``migrate --reverse``."""

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
        "What `--reverse` writes is migrated forward again before anything is changed: only if exactly the claims that "
        "are there come out, they were made by migrate, and the request is put back.",
        "resources:\n  claims:\n  - name: gpu\n    request: gpu\n",
        "resources:\n  limits:\n    nvidia.com/gpu: 2\n",
    ),
    ChangePage(
        REMOVED,
        "claim-object-removed",
        "safe",
        "The claim or its template goes",
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
        "The toleration of the device's taint may go",
        "migrate adds a toleration that an admission plugin may have added before. It looks like one written by hand, "
        "and without it a pod may not run where it ran; so it stays, unless `--unsafe` takes it away.",
    ),
    ChangePage(
        LOST,
        "not-restored",
        "note",
        "What migrate took out does not come back",
        "Labels that the claim implied, such as nvidia.com/gpu.present, and variables and annotations that a claim "
        "must not have are not kept anywhere; a pod with the device plugin's resource does without them as well. "
        "Whether the resource also stood under requests is not kept either: a limit alone means the same.",
    ),
    ChangePage(
        NOT_OURS,
        "not-made-by-migrate",
        "refusal",
        "migrate did not make this claim",
        "Migrating the restored workload again gives another claim than the one that is there. It was written or "
        "changed by hand, and says something that a count of a resource cannot say.",
    ),
    ChangePage(
        NO_RESOURCE,
        "no-resource-for-claim",
        "refusal",
        "No one resource of a device plugin is meant",
        "The class, selectors or capacity of a request do not tell which resource it was made from, or a selector "
        "cannot be traced back to one node label, or the claim is for all devices of a node and no label of the pod "
        "says how many these are.",
    ),
    ChangePage(
        NO_TEMPLATE,
        "claim-not-read",
        "refusal",
        "The claim or template is not among the files",
        "What the pod asked for is known from its claim only. Name the file that has it as well.",
    ),
    ChangePage(
        STILL_USED,
        "claim-object-stays",
        "note",
        "The claim or its template stays",
        "It stands in a place from which it cannot be taken without losing something else.",
    ),
)
