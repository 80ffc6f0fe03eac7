"""Known defects of Kubernetes releases beside the allocator: of the kubelet, of eviction, of who wakes a waiting pod.

Each is recognized by the state that it leaves, and named with the release that mends it. The releases are those of the
changelogs; where a changelog does not list it, the source of the releases was compared.
"""

from __future__ import annotations

from typing import Final

from kubectl_dra.api.releases import Defect

# The kubelet.

OUT_OF_EXTENDED: Final = Defect(135667, since=34, gone=36)
"""The kubelet counts extended resources that devices of claims serve as its own, has none, and refuses the pod."""
LATER_CLAIMS_UNPREPARED: Final = Defect(135919, gone=36, fixed={34: 4, 35: 1})
"""Of a pod's claims those after one that another pod of the node uses already are not prepared."""
UNPREPARED_IN_USE: Final = Defect(140212, gone=37)
"""The end of one pod makes the kubelet give back devices of a claim that another pod still uses."""
JOINS_UNPREPARED: Final = Defect(140527, gone=37)
"""A pod that joins a claim while its devices are given back runs with devices that are gone."""

# The scheduler, around its allocator.

HALF_A_CLAIM: Final = Defect(131662, since=33, gone=34, fixed={33: 1})
"""A request for more than 16 devices is never served, though a claim may have 32."""
ALLOCATED_TWICE: Final = Defect(136269, gone=36, fixed={34: 4, 35: 1})
"""Under a burst of pods the scheduler gives one exclusive device to two claims."""
CLAIM_EVENT_MISSED: Final = Defect(140831, gone=37)
"""A change of a claim may be missed, so that the pod waits until all waiting pods are tried again, every 5 minutes."""
EXTENDED_TAKES_OF_NODE: Final = Defect(141467, since=37)
"""A pod is not bound if a device that takes resources of its node serves an extended resource of it."""

# Taints.

TOLERATIONS_NOT_COPIED: Final = Defect(134479, gone=35)
"""The scheduler does not copy tolerations into the allocation, so that eviction does not see them."""
RULE_FOR_ALL: Final = Defect(141998, gone=38, fixed={37: 1})
"""The scheduler takes a DeviceTaintRule without deviceSelector for one of every device; it selects none."""
