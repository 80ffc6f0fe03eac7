"""All causes, by family."""

from __future__ import annotations

from kubectl_dra.explain.causes import claim, devices, extended, node, pod, pools, release, request

FAMILIES = (
    ("The pod is never evaluated", pod.KINDS),
    ("The claim's state", claim.KINDS),
    ("Classes, requests and selectors", request.KINDS),
    ("ResourceSlices and pools", pools.KINDS),
    ("Devices that match but cannot be had", devices.KINDS),
    ("Extended resources", extended.KINDS),
    ("Known defects of releases", release.KINDS),
    ("Allocated, but the pod does not run", node.KINDS),
)
ALL = tuple(kind for _, kinds in FAMILIES for kind in kinds)
