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
"""Reasons of events about devices. Their messages name claims, devices and nodes; other events may contain anything."""
EVICTION_REASON: Final = "DeletionByDeviceTaintManager"
"""The reason of the condition DisruptionTarget of a pod that the device taint controller evicts."""
