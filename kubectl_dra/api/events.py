"""Events about the devices of pods."""

from __future__ import annotations

from typing import Final

DEVICE_EVENTS: Final = (
    "FailedScheduling",
    "FailedResourceClaimCreation",
    "FailedPrepareDynamicResources",
    "DeviceTaintManagerEviction",
    "BindingConditionsPending",
    "NotTriggerScaleUp",
)
"""Their reasons. The messages name claims, devices and nodes; those of other events may hold anything."""
EVICTION_REASON: Final = "DeletionByDeviceTaintManager"
"""The reason of the condition DisruptionTarget of a pod that the device taint controller ends."""
