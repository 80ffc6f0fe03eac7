"""Causes before the scheduler ever evaluates the pod."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

NOT_CREATED = CauseKind(
    code="claim-not-created",
    title="The claim has not been created from its template yet",
    why="The resource claim controller makes one ResourceClaim per pod and template entry and records its name "
    "in the pod's status. Until then the scheduler leaves the pod out of its queue and writes no event.",
    fix="Look for a FailedResourceClaimCreation event on the pod, and check that kube-controller-manager runs.",
    seen_as="nothing: no event and no condition",
)
TEMPLATE_MISSING = CauseKind(
    code="template-missing",
    title="The ResourceClaimTemplate does not exist",
    why="A pod refers to a template in its own namespace; without it no claim can be created.",
    fix="Create the template in the pod's namespace, or correct resourceClaimTemplateName in a new pod.",
    seen_as='FailedResourceClaimCreation: resource claim template "…": not found',
)
CLAIM_MISSING = CauseKind(
    code="claim-missing",
    title="The ResourceClaim does not exist",
    why="A pod that names a claim waits outside the scheduler's queue until the claim exists in its namespace.",
    fix="Create the claim in the pod's namespace, or correct resourceClaimName in a new pod.",
    seen_as="nothing; the scheduler's log says: could not find resource claim",
)
CREATION_DENIED = CauseKind(
    code="claim-creation-denied",
    title="The API server refuses to create the claim",
    why="The controller could not create the claim from its template: a quota, an admission policy or a "
    "missing namespace label stands against it.",
    fix="Do what the message says: raise the quota, label the namespace, or change the template.",
    seen_as="FailedResourceClaimCreation with the API server's reason",
)
QUOTA = CauseKind(
    code="claim-quota-exceeded",
    title="A ResourceQuota leaves no room for the claim",
    why="A quota can bound the number of claims (count/resourceclaims.resource.k8s.io) and the devices of a class "
    "(CLASS.deviceclass.resource.k8s.io/devices). It counts what is asked for: All counts as 32 devices, and of a "
    "prioritized list the largest amount of each class. A claim above it is refused when it is created.",
    fix="Raise the quota, or delete claims that are not needed.",
    seen_as="FailedResourceClaimCreation: … exceeded quota: …",
)
ADMIN_NAMESPACE = CauseKind(
    code="admin-access-not-allowed",
    title="The namespace does not allow admin access",
    why="A claim with adminAccess: true may be created only in a namespace with the label "
    "resource.kubernetes.io/admin-access=true. The older label resource.k8s.io/admin-access does not count any more.",
    fix="An administrator has to label the namespace; otherwise leave adminAccess out.",
    seen_as="FailedResourceClaimCreation: … admin access to devices requires the … label",
)
POD_GROUP = CauseKind(
    code="waiting-for-pod-group",
    title="The pod waits for the other pods of its group",
    why="Pods of one group are scheduled together: until enough members exist and all of them fit, none is scheduled.",
    fix="Create the missing members, and explain those that are pending: one that does not fit holds back all.",
    seen_as="waiting for minCount pods from a gang …, or pod group is unschedulable",
)
CLAIM_DELETING = CauseKind(
    code="claim-being-deleted",
    title="The claim is being deleted",
    why="A claim with a deletion timestamp is never allocated; its finalizers go when no pod consumes it.",
    fix="Wait for its consumers to end, or make a new claim and pod.",
    seen_as='nothing; the scheduler\'s log says: resourceclaim "…" is being deleted',
)
CLAIM_NOT_OWNED = CauseKind(
    code="claim-of-another-pod",
    title="The generated claim belongs to another pod",
    why="A claim made from a template is owned by one pod, by UID. A recreated pod of the same name cannot use "
    "the claim of its predecessor.",
    fix="Delete the old claim; the controller makes a new one for this pod.",
    seen_as="nothing; the scheduler's log says: Pod is not owner",
)
ENTRY_WITHOUT_SOURCE = CauseKind(
    code="claim-entry-without-source",
    title="The pod's claim entry names neither a claim nor a template",
    why="Neither resourceClaimName nor resourceClaimTemplateName is set, often because an old webhook or client "
    "dropped a field that it does not know.",
    fix="Set one of the two names; check mutating webhooks that match pods.",
    seen_as="nothing; the scheduler's log says: none of the supported fields are set",
)
SCHEDULING_GATED = CauseKind(
    code="scheduling-gated",
    title="The pod has scheduling gates",
    why="A pod with spec.schedulingGates is held back until its controller removes them, for instance a queue.",
    fix="Ask the controller that set the gate; a queueing system removes it on admission.",
    seen_as="condition PodScheduled=False, reason SchedulingGated",
)
OTHER_SCHEDULER = CauseKind(
    code="other-scheduler",
    title="The pod asks for another scheduler",
    why="The pod names in spec.schedulerName a scheduler other than the default one. If it does not run, or does not "
    "support claims, nothing happens.",
    fix="Correct spec.schedulerName, or look at that scheduler; results here assume the default allocator.",
    seen_as="nothing from the default scheduler",
)
BOUND_BY_HAND = CauseKind(
    code="bypassed-scheduler",
    title="The pod was bound to a node past the scheduler",
    why="With spec.nodeName set the scheduler never sees the pod, and nobody else allocates its claims.",
    fix="Remove spec.nodeName and use a nodeSelector or node affinity.",
    seen_as="FailedPrepareDynamicResources on the node",
)
NOBODY_CONSUMES = CauseKind(
    code="no-consumer",
    title="No pod uses the claim",
    why="Devices are allocated when a pod that refers to the claim is scheduled, not before.",
    fix="Create a pod that names the claim.",
    seen_as="claim state pending",
)
FINISHED = CauseKind(
    code="pod-finished",
    title="The pod has ended",
    why="A pod in phase Succeeded or Failed is not scheduled again.",
    fix="Create a new pod.",
    seen_as="phase Succeeded or Failed",
)
GROUP_CLAIM = CauseKind(
    code="pod-group-claim-unknown",
    title="The claim belongs to the pod group, which has not named it",
    why="Pods of one group can share a claim made for the group. Its name stands in the status of the PodGroup, and "
    "the claim is owned by the PodGroup: until both are so, the scheduler leaves the pod out of its queue. "
    "PodGroups themselves are not read here.",
    fix="Look at the status of the PodGroup, and check that the feature gates DRAWorkloadResourceClaims and "
    "GenericWorkload are on.",
    seen_as="nothing; the scheduler's log says: not created yet, or neither Pod nor PodGroup … is the owner",
)
NO_SCALE_UP = CauseKind(
    code="no-scale-up",
    title="No node is added for the pod",
    why="Devices exist only where a node and its driver publish them. The cluster's autoscaler looked at the pod and "
    "found no node group that would help: many know nothing of the devices that a new node would publish, or "
    "leave out pods with claims.",
    fix="Add a node with such devices by hand, or give the autoscaler a node group whose devices it knows.",
    seen_as="NotTriggerScaleUp: pod did not trigger scale-up …",
)
RETRY = CauseKind(
    code="waiting-for-retry",
    title="The pod fits now, and waits for the next attempt",
    why="The scheduler tries a pod again when something changes that may help: a claim is deallocated, a slice, class"
    " or node is added or changed. The deletion of a slice or a class wakes nobody. Without such a change it "
    "tries again after 5 minutes.",
    fix="Wait up to 5 minutes, or wake it: any change to the pod (a label will do) makes the scheduler try again.",
    seen_as="the last FailedScheduling event, which is out of date",
)
CHANGED_SINCE = CauseKind(
    code="changed-since-last-attempt",
    title="Something changed after the scheduler last looked",
    why="The scheduler decides from its own copy of the cluster. What was published after its last word about the "
    "pod, or moments before, it did not take into account.",
    fix="Ask again in a few seconds.",
    seen_as="the last FailedScheduling event, which is older than the change",
)
BINDING_DENIED = CauseKind(
    code="scheduler-not-permitted",
    title="The scheduler may not write the allocation",
    why="The scheduler found devices, but the API server refuses what it writes. From 1.36 a scheduler needs the "
    "verbs of its role on resourceclaims/binding as well; a scheduler of your own, with a role written earlier, "
    "lacks them.",
    fix="Grant the scheduler update and patch on resourceclaims/binding and resourceclaims/status.",
    seen_as="SchedulerError: … changing status.allocation or status.reservedFor requires …",
)

KINDS = (
    NOT_CREATED,
    TEMPLATE_MISSING,
    CLAIM_MISSING,
    CREATION_DENIED,
    QUOTA,
    ADMIN_NAMESPACE,
    CLAIM_DELETING,
    CLAIM_NOT_OWNED,
    ENTRY_WITHOUT_SOURCE,
    SCHEDULING_GATED,
    OTHER_SCHEDULER,
    POD_GROUP,
    BOUND_BY_HAND,
    NOBODY_CONSUMES,
    FINISHED,
    GROUP_CLAIM,
    NO_SCALE_UP,
    RETRY,
    CHANGED_SINCE,
    BINDING_DENIED,
)
