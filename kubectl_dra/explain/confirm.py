"""How to see a cause with kubectl alone: a command, and what its output shows where the cause is right.

Words in capitals stand for names: POD, CLAIM, NAMESPACE, NODE, CLASS, DRIVER and so on. What several causes need stands
here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Check(NamedTuple):
    """A kubectl command, and what it shows."""

    shows: str
    command: str


SCHEDULER_SAYS: Final = (
    "kubectl get events -n NAMESPACE --field-selector involvedObject.name=POD,reason=FailedScheduling"
)
EVENTS: Final = "kubectl get events -n NAMESPACE --field-selector involvedObject.name=POD"
POD: Final = "kubectl get pod POD -n NAMESPACE -o yaml"
CLAIM: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o yaml"
ALLOCATION: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.status.allocation}'"
CONSUMERS: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.status.reservedFor}'"
HOLDERS: Final = (
    "kubectl get resourceclaims -A -o custom-columns='NAMESPACE:.metadata.namespace,CLAIM:.metadata.name,"
    "POOLS:.status.allocation.devices.results[*].pool,DEVICES:.status.allocation.devices.results[*].device,"
    "FOR:.status.reservedFor[*].name'"
)
CLASS: Final = "kubectl get deviceclass CLASS -o yaml"
CLASSES_BY_RESOURCE: Final = (
    "kubectl get deviceclasses -o custom-columns='CLASS:.metadata.name,RESOURCE:.spec.extendedResourceName,"
    "CREATED:.metadata.creationTimestamp'"
)
SLICES: Final = (
    "kubectl get resourceslices -o custom-columns='SLICE:.metadata.name,DRIVER:.spec.driver,POOL:.spec.pool.name,"
    "GENERATION:.spec.pool.generation,SLICES:.spec.pool.resourceSliceCount,NODE:.spec.nodeName'"
)
SLICES_OF_DRIVER: Final = "kubectl get resourceslices --field-selector spec.driver=DRIVER -o yaml"
SLICES_OF_NODE: Final = "kubectl get resourceslices --field-selector spec.nodeName=NODE -o yaml"
NODE: Final = "kubectl describe node NODE"
NODES: Final = (
    "kubectl get nodes -o custom-columns='NODE:.metadata.name,CORDONED:.spec.unschedulable,TAINTS:.spec.taints[*].key'"
)
PODS_ON_NODE: Final = "kubectl get pods -A --field-selector spec.nodeName=NODE -o wide"
GATES: Final = "kubectl get --raw /metrics | grep 'kubernetes_feature_enabled.*DRA'"
TAINTED: Final = (
    "kubectl get resourceslices "
    '-o jsonpath=\'{range .items[*].spec.devices[?(@.taints)]}{.name}{"\\t"}{.taints}{"\\n"}{end}\''
)
TAINT_RULES: Final = "kubectl get devicetaintrules -o yaml"
CONDITIONS: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.status.devices[*].conditions}'"
ALLOCATED_FOR: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.status.allocation.nodeSelector}'"
REQUESTS: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.spec.devices.requests}'"
CONSTRAINTS: Final = "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.spec.devices.constraints}'"
CAPACITY_WANTED: Final = (
    "kubectl get resourceclaim CLAIM -n NAMESPACE -o jsonpath='{.spec.devices.requests[*].exactly.capacity.requests}'"
)
NOMINATED: Final = "kubectl get pod POD -n NAMESPACE -o jsonpath='{.status.nominatedNodeName}'"
CLAIM_ENTRIES: Final = "kubectl get pod POD -n NAMESPACE -o jsonpath='{.spec.resourceClaims}'"
CLAIMS: Final = "kubectl get resourceclaims -n NAMESPACE"
CLAIMS_WHOLE: Final = "kubectl get resourceclaims -n NAMESPACE -o yaml"
PODS_BY_CLAIM: Final = (
    "kubectl get pods -n NAMESPACE -o custom-columns='POD:.metadata.name,NODE:.spec.nodeName,"
    "CLAIMS:.spec.resourceClaims[*].resourceClaimName'"
)
VERSION: Final = "kubectl version"
SCHEDULER_PODS: Final = "kubectl get pods -n kube-system -l component=kube-scheduler"

PENDING: Final = Check("The scheduler says `cannot allocate all claims`, and no more.", SCHEDULER_SAYS)
ERROR: Final = Check("The scheduler's message ends with the error.", SCHEDULER_SAYS)
HELD: Final = Check("Which claim holds which devices, and for which pods.", HOLDERS)
COUNTED_SLICES: Final = Check(
    "Count the slices of the pool that have its highest GENERATION: there are fewer than SLICES says.", SLICES
)
AFFECTED: Final = Check("The release is affected. The scheduler's can differ from the server's.", VERSION)
GATE: Final = Check("The value of the gate: 1 is on, 0 is off. The scheduler's can differ.", GATES)
RESTARTS: Final = Check("Restarts that go up. Managed control planes do not show it.", SCHEDULER_PODS)
DRIVER_POD: Final = Check("The driver's pod on the node: is there one, and is it ready?", PODS_ON_NODE)
DEVICES: Final = Check("What the devices have.", SLICES_OF_DRIVER)
DRIVER_TAINTS: Final = Check("Taints that drivers set, by device.", TAINTED)
RULES: Final = Check("Taints that administrators set; they are not in the slices.", TAINT_RULES)
