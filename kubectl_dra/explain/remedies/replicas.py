"""What helps a pod whose siblings hold all devices: fewer replicas, more nodes, or one claim for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.command import CommandLine, kubectl
from kubectl_dra.drivers.refused_claims import for_one_pod
from kubectl_dra.explain.cause_kinds import Look, NextStep
from kubectl_dra.explain.diagnosis import Remedy
from kubectl_dra.explain.funnel.blocked import MAX_EVIDENCE, Blocked
from kubectl_dra.explain.holders import ClaimHolder
from kubectl_dra.explain.phrase import Words, say
from kubectl_dra.explain.remedies.claim_edits import with_claims
from kubectl_dra.explain.remedies.ending_pods import STATEFUL, EndPods, fewer_for
from kubectl_dra.explain.remedies.proof_result import Proof


def for_replicas(blocked: Blocked, sibling: ClaimHolder) -> Remedy:
    """What helps a pod whose siblings hold everything: the end of one of them only makes another one wait."""
    owner, pod = sibling.owner, blocked.analysis.pod
    assert owner is not None and pod is not None
    fewer = fewer_for(owner, sibling.alike, pod)
    for fewer_replicas in fewer:
        change = EndPods.by(fewer_replicas)
        if (proof := blocked.what_if.proof_with(change)) is not None:
            given = blocked.what_if.cluster.ending(change.ended).delta.freed
            words = say("{what:capital}.", what=change.what)
            return Remedy(words, proof, sum(len(claim.results) for claim in given), (change,))
    # A StatefulSet ends the highest number first, other owners a pod without a node.
    waiting = owner.kind != STATEFUL and sum(not replica.node_name for replica in sibling.alike) > 1
    end = "ends this pod, or another one without a node, first" if waiting else "ends this pod first"
    # A node brings none of the devices that several nodes can use.
    local = any(item.slice.scope.node_name for item in blocked.lost)
    text = "Add a node with such devices" if local else "Add such devices"
    text += ": pods of {owner} hold {held}." if fewer else ": pods of {owner} hold {held}, and scaling it down {end}."
    own = next((entry for entry in blocked.analysis.question.claims if entry.claim is blocked.located.claim), None)
    if own is None or not own.template or for_one_pod(device.driver for device in sibling.claim.devices):
        return Remedy(say(text, owner=str(owner), end=end, held=_held(blocked)), adds_node=local)
    text += (
        " Or let the pods name one ResourceClaim instead of template {template}, and share its devices (the command "
        "share writes it)."
    )
    words = say(text, owner=str(owner), end=end, held=_held(blocked), template=own.template)
    written, place = _template(blocked, own.template, pod.metadata.namespace)
    return Remedy(words, _using(blocked, sibling.claim), commands=written, place=place)


def _held(blocked: Blocked) -> Words:
    """Number of matching devices that are held, and of the others that would be enough."""
    if not blocked.left:
        return "all that match"
    needed: Words = "all of a node" if blocked.spec.allocation_mode == ALL else str(blocked.spec.count)
    words = {"held": len(blocked.lost), "tested": blocked.tested, "left": blocked.left, "needed": needed}
    most = blocked.most_on_one_node
    if most < blocked.left:
        text = (
            "{held} of the {tested} that match (at most {most} {most:is|are} free on one node, {needed} {are} needed)"
        )
    else:
        text = "{held} of the {tested} that match ({left} {left:is|are} free, {needed} {are} needed)"
    return say(text, most=most, are="is" if needed == "1" else "are", **words)


def _template(blocked: Blocked, name: str, namespace: str) -> tuple[tuple[CommandLine, ...], NextStep | None]:
    """The command that shows the template in place of which a claim has to be written, else how to look into that.

    What only a manifest has is shared there.
    """
    if ("ResourceClaimTemplate", namespace, name) in blocked.analysis.snapshot.created:
        return (), NextStep(Look.SHARE)
    return (kubectl("get", kind="resourceclaimtemplate", name=name, namespace=namespace, more=("-o", "yaml")),), None


def _using(blocked: Blocked, claim: ResourceClaim) -> Proof | None:
    """The proof that the pod would run if it used a claim that has its devices, in place of its own."""
    pod, own = blocked.analysis.pod, blocked.located.claim
    if pod is None or claim.metadata.namespace != own.metadata.namespace:
        return None
    if for_one_pod(device.driver for device in claim.devices):
        return None
    return blocked.what_if.with_pod(with_claims(pod, own.metadata.name, (claim.metadata.name,))).proof()


def by_sharing(blocked: Blocked, held: Sequence[ResourceClaim]) -> Remedy | None:
    """To share the devices, which the pods' one template cannot say: it makes a claim for each of them.

    None where nothing says that sharing is meant: neither a configuration of the driver for that, nor a driver whose
    claims are meant to be shared.
    """
    own = next((entry for entry in blocked.analysis.question.claims if entry.claim is blocked.located.claim), None)
    if own is None or not own.template or own.claim is None:
        return None
    pods = blocked.analysis.snapshot.pods
    holders = [
        pods.get((claim.metadata.namespace, use.name))
        for claim in held
        for use in claim.reserved_for
        if use.resource == "pods"
    ]
    space = own.claim.metadata.namespace
    for pod in holders:
        named_by = {pod_claim.template_name for pod_claim in pod.spec.resource_claims} if pod is not None else set()
        if pod is None or own.template not in named_by or pod.metadata.namespace != space:
            return None
    if not holders or not _meant_to_be_shared(blocked):
        return None
    text = (
        "Template {template} makes a claim for each pod, and each claim takes a device of its own. To share one, make "
        "one ResourceClaim with the same content and let {pods:some 2} and this pod name it (resourceClaimName); pods "
        "that exist have to be recreated."
    )
    names = [pod.metadata.name for pod in holders if pod is not None]
    proof = next((proof for claim in held[:MAX_EVIDENCE] if (proof := _using(blocked, claim))), None)
    written, place = _template(blocked, own.template, space)
    return Remedy(say(text, template=own.template, pods=names), proof, commands=written, place=place)


def _meant_to_be_shared(blocked: Blocked) -> bool:
    from kubectl_dra.data.drivers import catalogue

    drivers = {item.id.driver for item in blocked.lost}
    known = [driver for name in drivers if (driver := catalogue().driver(name)) is not None]
    opaque = [config.get("opaque") or {} for config in blocked.located.claim.config]
    shares = any("sharing" in (config.get("parameters") or {}) for config in opaque)
    return shares or any(driver.shareable for driver in known)
