"""Causes in classes, requests and CEL selectors."""

from __future__ import annotations

from kubectl_dra.explain.diagnosis import CauseKind

CLASS_MISSING = CauseKind(
    code="class-missing",
    title="The DeviceClass does not exist",
    why="A request names the DeviceClass it draws from. Drivers install their classes; without it no node is "
    "looked at.",
    fix="Install the driver that brings the class, or correct deviceClassName in a new claim.",
    seen_as="request …: device class … does not exist",
)
CLASS_MATCHES_NOTHING = CauseKind(
    code="class-matches-nothing",
    title="The class's selectors match no device here",
    why="All selectors of the DeviceClass have to hold; the first false one refuses a device.",
    fix="Compare the class's selectors with what the driver publishes; use another class.",
    seen_as="cannot allocate all claims",
)
SELECTOR_MATCHES_NOTHING = CauseKind(
    code="selector-matches-nothing",
    title="The request's selectors match too few devices",
    why="All selectors of the request have to hold, and enough devices of one node have to fulfil them.",
    fix="Relax the term that fails, or add nodes with such devices.",
    seen_as="cannot allocate all claims",
)
SELECTOR_ERROR = CauseKind(
    code="selector-error",
    title="A selector fails with an error on a device",
    why="A CEL run-time error on any device that the scheduler looks at ends the attempt for the whole pod, on "
    "all nodes. Reading an attribute that a device lacks is the usual reason.",
    fix="Guard the attribute (has(…), .?name.orValue(…), or a driver test before it).",
    seen_as="SchedulerError: … selector #…: CEL runtime error: no such key: …",
)
SELECTOR_COMPILE = CauseKind(
    code="selector-does-not-compile",
    title="A selector does not compile",
    why="The scheduler compiles selectors when it needs them; one that does not compile ends the attempt.",
    fix="Correct the expression; check whether it needs a newer Kubernetes.",
    seen_as="SchedulerError: … CEL compile error: …",
)
UNCONVERTIBLE = CauseKind(
    code="attribute-unconvertible",
    title="A device publishes an attribute that selectors cannot read",
    why="All attributes of a device are converted before any selector runs. A version that is no semantic "
    "version, or a list while the feature is off, fails every selector on that device.",
    fix="Report it to the driver's maintainers. A narrower selector does not help: the conversion comes first.",
    seen_as="SchedulerError: … CEL runtime error: attribute …",
)
TOO_MANY_DEVICES = CauseKind(
    code="too-many-devices",
    title="The claim asks for more than 32 devices",
    why="An allocation holds at most 32 devices; the scheduler refuses larger claims on every node.",
    fix="Split the request into several claims.",
    seen_as="SchedulerError: number of requested devices … exceeds the claim limit of 32",
)
FEATURE_OFF = CauseKind(
    code="feature-disabled",
    title="The claim uses a feature that is off",
    why="The scheduler refuses a claim that needs a feature gate which is off.",
    fix="Turn the feature gate on, or do without the field.",
    seen_as="SchedulerError: … but the … feature is disabled",
)
UNSUPPORTED = CauseKind(
    code="unsupported-request",
    title="The request has a form that this scheduler does not know",
    why="An allocation mode, request or constraint of a newer API version is an error for an older scheduler.",
    fix="Use fields that the cluster's release knows.",
    seen_as="SchedulerError: unsupported count mode, unknown request type, empty constraint",
)
TOO_MANY_TOGETHER = CauseKind(
    code="alternatives-too-large",
    title="The alternatives that fit ask for more than 32 devices together",
    why="An allocation of one claim holds at most 32 devices. Of prioritized lists the scheduler passes over what "
    "would exceed that, so smaller alternatives are left, and those do not fit here.",
    fix="Put the requests into claims of their own: each has its own 32 devices.",
    seen_as="cannot allocate all claims",
)

KINDS = (
    CLASS_MISSING,
    CLASS_MATCHES_NOTHING,
    SELECTOR_MATCHES_NOTHING,
    SELECTOR_ERROR,
    SELECTOR_COMPILE,
    UNCONVERTIBLE,
    TOO_MANY_DEVICES,
    FEATURE_OFF,
    UNSUPPORTED,
    TOO_MANY_TOGETHER,
)
