"""A pod from a manifest: what the API server would make of it, and why it would refuse it or what is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from msgspec.structs import replace

from kubectl_dra.admission.admit import AdmissionObjects, admit
from kubectl_dra.admission.plugins import Concerned, FieldRefused, Refusal, VersionNotServed
from kubectl_dra.api.labels import InvalidNodeSelector, LabelSelector, requirement_matches
from kubectl_dra.api.meta import EMPTY, title
from kubectl_dra.api.nodes import Affinity, PodAffinity
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import GROUP, default_version, lifecycle
from kubectl_dra.cluster.snapshot import RefusedChange, Snapshot, WrittenKey, stand_in
from kubectl_dra.errors import InputError
from kubectl_dra.explain.question.resolve import Question, about_pod
from kubectl_dra.explain.settings import Settings


def about_new_pod(
    pod: Pod, snapshot: Snapshot, settings: Settings, written: Mapping[str, Any] | None = None
) -> Question:
    """The question about a pod to be created, as the API server would store it.

    ``written`` is its manifest: the server checks its fields, and Pod Security checks it.
    """
    admission = admit(pod, AdmissionObjects.of(snapshot, pod.metadata.namespace))
    question = about_pod(admission.pod, snapshot, exists=False)
    if not written:
        return replace(question, refusals=admission.refusals, unread=admission.unread)
    concerned = Concerned("Pod", pod.metadata.name, pod.metadata.namespace)
    refused = with_refused_objects(replace(question, unread=admission.unread), snapshot, settings)
    # A workload whose template is invalid is refused itself, and makes no pod.
    makes_none = any(refusal.concerned.kind not in _OF_CLAIMS for refusal in refused.refusals)
    invalid = () if makes_none else _invalid(concerned, written, snapshot, settings)
    own = (*invalid, *admission.refusals, *_insecure(pod, written, snapshot))
    return replace(refused, refusals=(*refused.refusals, *own))


_OF_CLAIMS = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")


def with_refused_objects(question: Question, snapshot: Snapshot, settings: Settings) -> Question:
    """The question with what the server refuses of a manifest's other objects: claims, templates, classes, the owner.

    Of an object its first error: what follows from it says nothing more.
    """
    refusals: list[Refusal] = []
    for concerned, raw in _written_for(question, snapshot):
        refusals += islice(_invalid(concerned, raw, snapshot, settings), 1)
    return replace(question, refusals=(*question.refusals, *refusals))


def versions_off_by_default(question: Question, snapshot: Snapshot, settings: Settings) -> Iterator[tuple[str, str]]:
    """The objects of a manifest in a version that the release has, and serves only if it is told to: what each is, and
    the version that it serves. Whether the cluster serves the other one was not read.
    """
    release = settings.scheduler.release
    for concerned, raw in _written_for(question, snapshot):
        group, _, version = str(raw.get("apiVersion")).rpartition("/")
        life = lifecycle(version, concerned.kind) if group == GROUP else None
        served = default_version(concerned.kind, release)
        if life is not None and life.exists(release) and not life.served_by_default(release) and served:
            yield f"{concerned.kind} {'/'.join(filter(None, (concerned.namespace, concerned.name)))}", served


def _written_for(question: Question, snapshot: Snapshot) -> Iterator[tuple[Concerned, Mapping[str, Any]]]:
    space, keys = question.namespace, list[WrittenKey]()
    for entry in question.claims:
        claim = entry.claim
        keys.append(("ResourceClaimTemplate", space, entry.template))
        keys.append(("ResourceClaim", space, claim.metadata.name if claim is not None else entry.name))
        specs = claim.alternatives() if claim is not None else ()
        keys += [("DeviceClass", "", spec.device_class) for spec in specs]
    for key in dict.fromkeys(keys):
        if (raw := snapshot.written.get(key)) is not None:
            yield Concerned(key[0], key[2], key[1]), raw
    yield from _makers(question, snapshot)


def _makers(question: Question, snapshot: Snapshot) -> Iterator[tuple[Concerned, Mapping[str, Any]]]:
    """The workload of the manifest that makes the pod."""
    stands_for, space = stand_in(question.pod), question.namespace
    for raw in snapshot.workloads:
        meta = raw.get("metadata") or EMPTY
        own = (meta.get("namespace") or space) == space
        if stands_for is not None and own and title(raw) == stands_for.workload:
            yield Concerned(raw["kind"], meta.get("name") or "", space), raw


def _invalid(
    concerned: Concerned, written: Mapping[str, Any], snapshot: Snapshot, settings: Settings
) -> Iterator[Refusal]:
    """The fields that the server finds invalid."""
    from kubectl_dra.admission.server.verdict import check, served_instead

    instead, removed = served_instead(written, settings.scheduler.release)
    if instead:
        since = f"no release since {removed} serves" if removed else "no release serves"
        message = f"{since} {concerned.kind} in {written['apiVersion']}"
        yield VersionNotServed(concerned, "apiVersion", message, instead)
        return
    if concerned.kind == "Job":
        from kubectl_dra.cluster.merge import without_generated

        stored = snapshot.stored.get(("batch", "Job", concerned.namespace, concerned.name))
        written = without_generated(written, stored) if stored is not None else written
    labels = {name: meta.labels for name, meta in snapshot.namespaces.items()}
    verdict = check(written, release=settings.scheduler.release, features=settings.scheduler.gates, namespaces=labels)
    for violation in verdict.violations if verdict is not None else ():
        if violation.rule == "admin-access-namespace":
            # A cause of its own, which the cluster has as well.
            continue
        yield FieldRefused(concerned, violation.field, violation.message)


def _insecure(pod: Pod, written: Mapping[str, Any], snapshot: Snapshot) -> Iterator[Refusal]:
    """What Pod Security of the namespace forbids."""
    from kubectl_dra.admission import pod_security

    namespace = snapshot.namespaces.get(pod.metadata.namespace)
    refusal = pod_security.refusal(written, pod.metadata.namespace, namespace.labels) if namespace is not None else None
    if refusal is not None:
        yield refusal


# Whether the scheduler can parse the label selectors of the pod in question.

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_selectors(pod: Pod) -> None:
    """Refuse a pod that no API server would have stored.

    Raises:
        InputError: an entry of a label selector has an unknown operator, or unsuitable values.
    """
    for path, selector in _selectors(pod):
        for index, requirement in enumerate(selector.match_expressions if selector is not None else ()):
            try:
                requirement_matches(requirement, {})
            except InvalidNodeSelector as error:
                name = f"{pod.metadata.namespace}/{pod.metadata.name}"
                where = f"{path}.matchExpressions[{index}]"
                raise InputError(f"Pod {name} is not valid: {where}: {error}") from None


def _selectors(pod: Pod) -> Iterator[tuple[str, LabelSelector | None]]:
    affinity = pod.spec.affinity or Affinity()
    yield from _of_terms("spec.affinity.podAffinity", affinity.pod_affinity)
    yield from _of_terms("spec.affinity.podAntiAffinity", affinity.pod_anti_affinity)
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        yield f"spec.topologySpreadConstraints[{index}].labelSelector", constraint.label_selector


def _of_terms(path: str, affinity: PodAffinity) -> Iterator[tuple[str, LabelSelector | None]]:
    terms = [(f"{path}.{_REQUIRED}[{index}]", term) for index, term in enumerate(affinity.required)]
    for index, weighted in enumerate(affinity.preferred):
        terms.append((f"{path}.{_PREFERRED}[{index}].podAffinityTerm", weighted.term))
    for where, term in terms:
        yield f"{where}.labelSelector", term.label_selector
        yield f"{where}.namespaceSelector", term.namespace_selector


# Changes of a manifest that the API server refuses and that a question depends on.

_KINDS = {"pod": "Pod", "claim": "ResourceClaim"}


def refused_changes(question: Question, snapshot: Snapshot) -> Iterator[RefusedChange]:
    """Of the object itself, of the workload that makes the pod, and of the templates that its claims are made from."""
    templates = [entry.template for entry in question.claims if entry.template]
    makers = [(maker.kind, maker.name) for maker, _ in _makers(question, snapshot)]
    for change in snapshot.refused:
        own = (change.kind, change.name)
        itself = question.exists and own == (_KINDS[question.kind], question.name)
        template = change.kind == "ResourceClaimTemplate" and change.name in templates
        if change.namespace == question.namespace and (itself or template or own in makers):
            yield change
