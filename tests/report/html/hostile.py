"""A cluster of which every name and text tries to be markup, a script, or something else than it is."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
SCRIPT = "<script>window.hurt=1</script>"
TEXTS = (
    SCRIPT,
    "</script><script>window.hurt=2</script>",
    "</style><style>*{display:none}</style>",
    '"><img src=x onerror="window.hurt=3">',
    "' onmouseover='window.hurt=4",
    "javascript:window.hurt=5",
    "<!--<iframe src=//example.com>",
    "\u202eevil\u2066",
    "&lt;b&gt; &#60;",
)


def name(number: int) -> str:
    """One of the texts, made different by a number."""
    return f"{TEXTS[number % len(TEXTS)]}-{number}"


def objects() -> list[Json]:
    """Nodes, slices, classes, claims, a taint rule, a pod and an event with such texts in every field."""
    driver, device_class = name(0), name(3)
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name(at)}} for at in range(9)]
    slices = [slice_of(driver, name(at), [device(at * 9 + index) for index in range(9)]) for at in range(9)]
    selector = {"cel": {"expression": 'device.driver != "' + "<script>" + '"'}}
    classes = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": text},
            "spec": {"selectors": [selector]},
        }
        for text in (device_class, *TEXTS)
    ]
    held = [claim(at, driver) for at in range(9)]
    wanted = {
        "deviceClassName": device_class,
        "count": 31,
        "selectors": [{"cel": {"expression": f'"{SCRIPT}" == "x"'}}],
    }
    waiting = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": SCRIPT, "namespace": "ns"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": name(1), "exactly": wanted},
                    {"name": "plain", "exactly": {"deviceClassName": device_class}},
                ]
            }
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [], "resourceClaims": [{"name": name(2), "resourceClaimName": SCRIPT}]},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": name(3), "message": " ".join(TEXTS)}],
        },
    }
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name(5)},
        "spec": {
            "deviceSelector": {"driver": driver, "pool": name(1)},
            "taint": {"key": name(6), "value": name(7), "effect": "NoSchedule"},
        },
    }
    return [*nodes, *slices, *classes, *held, waiting, pod, rule]


def device(number: int) -> Json:
    return {
        "name": name(number),
        "attributes": {"model": {"string": name(number)}, "productName": {"string": name(number + 1)}},
        "capacity": {TEXTS[3]: {"value": "1"}},
        "allowMultipleAllocations": number % 3 == 0,
    }


def slice_of(driver: str, node: str, devices: list[Json]) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"slice-{node}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def claim(number: int, driver: str) -> Json:
    result = {"request": name(1), "driver": driver, "pool": name(number), "device": name(number * 9 + 1)}
    users = [{"resource": "pods", "name": name(4), "uid": "1"}, {"resource": name(5), "name": name(6)}]
    return claim_of(name(number), name(2), [result], users)


def claim_of(called: str, namespace: str, results: list[Json], users: list[Json]) -> Json:
    """A claim that holds devices for its users."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": called, "namespace": namespace},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": results}}, "reservedFor": users},
    }
