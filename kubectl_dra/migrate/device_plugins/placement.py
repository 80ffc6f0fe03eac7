"""Translates rules for the pod's node into rules for its devices: nodeSelector and node affinity become selectors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.limits import MAX_EXPRESSION_BYTES, MAX_SELECTORS
from kubectl_dra.api.releases import Release, gate_default
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import Change, items_at, value_at
from kubectl_dra.migrate.codes import Safety
from kubectl_dra.migrate.device_plugins.labels import (
    TERMS,
    Stated,
    StatedTerm,
    Translation,
    emptied,
    node_selector,
    preferred,
    required_terms,
    translate,
)
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, whole_number
from kubectl_dra.migrate.vendors.label_to_cel import Untranslatable, condition, joined
from kubectl_dra.migrate.vendors.model import EMPTY, Resource

_SPLIT: Final = "Split the workload, or write the request by hand."


class LabelNote(NamedTuple):
    """What to know of a label that goes or stays."""

    path: FieldPath
    key: str
    advice: str


class LabelReason(NamedTuple):
    """What the claim has for a condition on a label: what it ``becomes`` or, if empty, why nothing is needed."""

    path: FieldPath
    condition: str
    becomes: str
    why: str = ""


class PlacementPlan(NamedTuple):
    """What a pod's labels imply about the devices of one resource. Paths lead from the pod's spec.

    Attributes:
        selectors: CEL to add to every request of the resource in the pod.
        device_class: the class to use instead of the resource's, empty to keep that.
        removed, kept: label keys, expressions and terms that the resource does not need and those that it needs; see
            ``agreed``.
        notes, reasons: what to know of the labels, and what the claim has for them.
        refusals: (path, why, way out); if there are any, do not migrate the pod's requests of the resource.
        annotations: names of the pod's annotations that selectors replace.
        safety: unsafe if the pod may not get the same kind of device, or not run where it ran.
    """

    selectors: tuple[str, ...] = ()
    device_class: str = ""
    removed: tuple[FieldPath, ...] = ()
    kept: tuple[FieldPath, ...] = ()
    notes: tuple[LabelNote, ...] = ()
    reasons: tuple[LabelReason, ...] = ()
    refusals: tuple[tuple[FieldPath, str, str], ...] = ()
    annotations: tuple[str, ...] = ()
    safety: Safety = "safe"


def class_of(resource: Resource, plans: Mapping[str, PlacementPlan]) -> str:
    """The class to ask for: what the pod's labels chose, else the resource's own. ``plans`` are by resource."""
    return plans.get(resource.name, PlacementPlan()).device_class or resource.device_class


def placement(
    spec: Mapping[str, Any],
    resource: Resource,
    catalogue: VendorCatalogue,
    release: Release,
    annotations: Mapping[str, Any] = EMPTY,
) -> PlacementPlan:
    """What the pod's spec (and annotations, for HAMi) implies about its devices.

    Labels that say nothing about the resource's devices stay. A required affinity with several terms is
    translated only if every expression of every term says something about the devices.
    """
    reader = _Reader(spec, resource, catalogue)
    for stated in node_selector(spec):
        reader.all_of(stated)
    terms = required_terms(spec)
    if len(terms) == 1:
        for stated in terms[0].stated:
            reader.all_of(stated)
    elif terms:
        reader.any_of(terms)
    for stated in preferred(spec):
        reader.prefers(stated, release)
    for name, value in annotations.items():
        reader.annotation(name, value)
    return reader.placement()


class _Reader:
    """Collects what the conditions of one pod imply for one resource."""

    def __init__(self, spec: Mapping[str, Any], resource: Resource, catalogue: VendorCatalogue) -> None:
        self._resource = resource
        self._catalogue = catalogue
        self._counts = _counts(spec)
        self._selectors: dict[str, None] = {}
        self._classes: dict[str, FieldPath] = {}
        self._notes: dict[LabelNote, None] = {}
        self._refusals: list[tuple[FieldPath, str, str]] = []
        self._reasons: dict[LabelReason, None] = {}
        self._removed: list[FieldPath] = []
        self._kept: list[FieldPath] = []
        self._annotations: list[str] = []
        self._unsafe = False

    def _translated(self, stated: Stated) -> Translation | None:
        """What becomes of a condition; None if it says nothing about the resource's devices."""
        labelled = self._catalogue.label(stated.key, self._resource)
        if labelled is None:
            return None
        if stated.condition is None:
            why = f"{stated.key} is malformed: it needs an operator, and texts as values"
            return Translation(refusal=(why, "Correct it, and migrate again."))
        driver = self._catalogue.compared(labelled.rule, self._resource)
        return translate(stated.condition, labelled, self._resource, driver, self._counts)

    def all_of(self, stated: Stated) -> None:
        """Add a condition that must hold."""
        translation = self._translated(stated)
        if translation is None:
            return
        self._tell(stated, translation)
        if translation.refusal is None:
            self._select(stated.path, translation.selectors, translation.device_class)
            (self._removed if translation.leaves else self._kept).append(stated.path)

    def any_of(self, terms: Sequence[StatedTerm]) -> None:
        """Add terms of which one must hold: they become one selector, or none is touched."""
        read = [[(stated, self._translated(stated)) for stated in term.stated] for term in terms]
        terms_read = [(stated, translation) for term in read for stated, translation in term if translation is not None]
        if not terms_read:
            return
        refused = [(stated, translation) for stated, translation in terms_read if translation.refusal]
        if refused:
            for stated, translation in refused:
                self._tell(stated, translation)
            return
        whole = all(term.stated and not term.fields for term in terms)
        if not whole or not all(
            translation and translation.leaves and translation.decided for term in read for _, translation in term
        ):
            self._keep_terms(terms_read)
            return
        classes = [
            {translation.device_class for _, translation in term if translation and translation.device_class}
            for term in read
        ]
        if any(device_class != classes[0] for device_class in classes) or len(classes[0]) > 1:
            why = "the terms of the node affinity ask for devices of different classes"
            self._refusals.append((TERMS, why, _SPLIT))
            return
        for stated, translation in terms_read:
            self._tell(stated, translation)
        per_term = [
            [selector for _, translation in term if translation for selector in translation.selectors] for term in read
        ]
        alternatives = dict.fromkeys(joined(selectors, "&&") for selectors in per_term if selectors)
        # A term that is true of all devices leaves nothing to select.
        selectors = (joined(list(alternatives), "||"),) if all(per_term) else ()
        self._select(TERMS, selectors, next(iter(classes[0]), ""))
        self._removed.append(TERMS)

    def _keep_terms(self, terms_read: Sequence[tuple[Stated, Translation]]) -> None:
        self._kept.append(TERMS)
        for stated, translation in terms_read:
            if translation.device_class:
                why = f"{stated.key} chooses a class of devices, but only in one of several terms"
                self._refusals.append((stated.path, why, _SPLIT))
            elif translation.leaves:
                advice = (
                    "Terms beside it ask for other things than devices, and only one of the terms has to be true. "
                    "Nodes need the label as long as it stays."
                )
                self._notes[LabelNote(TERMS, stated.key, advice)] = None
            else:
                self._tell(stated, translation)

    def prefers(self, stated: Stated, release: Release) -> None:
        """Add a preferred condition, which stays."""
        translation = self._translated(stated)
        if translation is None or not (translation.leaves or translation.refusal or translation.selectors):
            return
        advice = "It is a preference, and nodes need the label as long as it stays."
        if gate_default("DRAPrioritizedList", release):
            advice += " A request with firstAvailable can say it of devices, where queues such as Kueue do not matter."
        self._notes[LabelNote(stated.path, stated.key, advice)] = None

    def annotation(self, name: str, value: object) -> None:
        """Add an annotation of the pod that chooses devices."""
        labelled = self._catalogue.annotation(name, self._resource)
        if labelled is None:
            return
        path: FieldPath = ("metadata", "annotations", name)
        try:
            if not isinstance(value, str):
                raise Untranslatable("is not text")
            driver = self._catalogue.compared(labelled.rule, self._resource)
            expression = condition(labelled.rule, driver, "In", (value,))
        except Untranslatable as error:
            self._refusals.append((path, f"annotation {name} {error}", "Correct or remove it, and migrate again."))
            return
        self._select(path, (expression,), "")
        self._annotations.append(name)
        becomes = f"a selector on attribute {labelled.rule.attribute}"
        self._reasons[LabelReason(path, f"annotation {name}", becomes)] = None

    def _tell(self, stated: Stated, translation: Translation) -> None:
        path = stated.path
        self._notes.update(dict.fromkeys(LabelNote(path, stated.key, advice) for advice in translation.advice))
        if translation.becomes:
            self._reasons[LabelReason(path, str(stated.condition), translation.becomes)] = None
        self._reasons.update(dict.fromkeys(LabelReason(path, "", "", why) for why in translation.reasons))
        self._unsafe |= translation.unsafe
        if translation.refusal:
            self._refusals.append((path, *translation.refusal))

    def _select(self, path: FieldPath, selectors: Sequence[str], device_class: str) -> None:
        self._selectors.update(dict.fromkeys(selectors))
        if device_class and device_class != self._resource.device_class:
            self._classes.setdefault(device_class, path)
        for selector in selectors:
            if len(selector.encode()) > MAX_EXPRESSION_BYTES:
                why = f"its selector would have more than {MAX_EXPRESSION_BYTES} bytes"
                self._refusals.append((path, why, "Name fewer values, and migrate again."))

    def placement(self) -> PlacementPlan:
        """The result. With a refusal nothing is changed."""
        if len(self._classes) > 1:
            path = list(self._classes.values())[1]
            self._refusals.append((path, "the labels ask for devices of different classes", _SPLIT))
        if len(self._selectors) + len(self._resource.selectors) > MAX_SELECTORS:
            why = f"the request would have more than {MAX_SELECTORS} selectors"
            self._refusals.append(((), why, _SPLIT))
        notes = tuple(self._notes)
        if self._refusals:
            return PlacementPlan(notes=notes, refusals=tuple(self._refusals))
        return PlacementPlan(
            selectors=tuple(self._selectors),
            device_class=next(iter(self._classes), ""),
            removed=tuple(self._removed),
            kept=tuple(self._kept),
            notes=notes,
            reasons=tuple(self._reasons),
            annotations=tuple(self._annotations),
            safety="unsafe" if self._unsafe else "safe",
        )


class LabelChanges(NamedTuple):
    """What becomes of a pod's labels, for all of its resources together. Paths lead from the pod's spec.

    ``goes`` and ``stays`` are (path, sentence); ``reasons`` say what the claims have for the labels.
    """

    changes: tuple[Change, ...]
    goes: tuple[tuple[FieldPath, str], ...]
    stays: tuple[tuple[FieldPath, str], ...]
    reasons: tuple[str, ...]


def agreed(spec: Mapping[str, Any], plans: Collection[PlacementPlan]) -> LabelChanges:
    """A label goes if every resource that it is about can do without it."""
    kept = [path for plan in plans for path in plan.kept]
    removed = [
        path for plan in plans for path in plan.removed if not any(_overlap(path, kept_path) for kept_path in kept)
    ]
    goes: dict[tuple[FieldPath, str], None] = {}
    stays: dict[tuple[FieldPath, str], None] = {}
    for note in (note for plan in plans for note in plan.notes):
        if _is_within(note.path, removed):
            goes[note.path, f"{note.key} goes. {note.advice}"] = None
        else:
            stays[note.path, f"{note.key} stays on the pod. {note.advice}"] = None
    reasons: dict[str, None] = {}
    for reason in (reason for plan in plans for reason in plan.reasons):
        if not reason.becomes:
            reasons[reason.why] = None
        elif reason.path[0] == "metadata" or _is_within(reason.path, removed):
            reasons[f"{reason.condition} becomes {reason.becomes}"] = None
        else:
            reasons[f"{reason.condition} stays, and also becomes {reason.becomes}"] = None
    return LabelChanges(emptied(spec, removed), tuple(goes), tuple(stays), tuple(reasons))


def _overlap(one: FieldPath, other: FieldPath) -> bool:
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def _is_within(path: FieldPath, around: Sequence[FieldPath]) -> bool:
    return any(path[: len(outer)] == outer for outer in around)


def _counts(spec: Mapping[str, Any]) -> Mapping[str, int | None]:
    """The total that a pod's containers request of each resource; None if an amount is not a whole number."""
    counts: dict[str, int | None] = {}
    for container in items_at(spec, "containers"):
        resources = value_at(container, ("resources",))
        if not isinstance(resources, Mapping):
            continue
        mappings = [resources[part] for part in ("requests", "limits") if isinstance(resources.get(part), Mapping)]
        for name, amount in {key: amount for mapping in mappings for key, amount in mapping.items()}.items():
            before, more = counts.get(name, 0), whole_number(amount)
            counts[name] = None if before is None or more is None else before + more
    return counts


# Tolerations that the API server adds to pods with extended resources, but not to pods with claims.


def missing(spec: Mapping[str, Any], resources: Iterable[Resource]) -> Iterator[Mapping[str, str]]:
    """The tolerations of the resources that the pod lacks and that must now be written out.

    The admission plugin ExtendedResourceToleration considers only requests for extended resources. If a pod
    already tolerates the same key, its author knew the taint of those nodes, and nothing is added.
    """
    own = [item for item in items_at(spec, "tolerations") if isinstance(item, Mapping)]
    added: list[Mapping[str, str]] = []
    for resource in resources:
        for toleration in resource.tolerations:
            if toleration not in added and not any(_covers(item, toleration) for item in own):
                added.append(toleration)
                yield toleration


def _covers(own: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    if own.get("effect") not in (None, "", wanted.get("effect")):
        return False
    if not own.get("key"):
        return own.get("operator") == "Exists"
    return bool(own["key"] == wanted.get("key"))
