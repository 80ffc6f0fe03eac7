"""The names that advice about a constraint gives: in full, as they are written there."""

from __future__ import annotations

import pytest

from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.manifests.changes import Splice
from tests.lint.support import findings

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: CLASS, count: 2}}]
    constraints: [{matchAttribute: NAME}]
"""


def of(name: str, device_class: str = "gpu.nvidia.com") -> LocatedFinding:
    found = findings(CLAIM.replace("NAME", name).replace("CLASS", device_class), "DRA104,DRA601")
    return found[0]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("resource.kubernetes.io/pcieroot", "Did you mean resource.kubernetes.io/pcieRoot?"),
        ("gpu.nvidia.com/arhitecture", "Did you mean gpu.nvidia.com/architecture?"),
        ("pcieRoot", "Write resource.kubernetes.io/pcieRoot"),
        ("architecture", "Write gpu.nvidia.com/architecture"),
        ("archtecture", "Did you mean gpu.nvidia.com/architecture?"),
    ],
)
def test_a_proposed_name_is_what_the_fix_writes(name: str, advice: str) -> None:
    found = of(name)
    assert found.advice == advice
    assert [getattr(change, "value", "") for change in found.changes] == [advice.split()[-1].rstrip("?")]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "gpu.nvidia.com/numa-node",
            "Write resource.kubernetes.io/pcieRoot, the nearest that earlier releases publish",
        ),
        ("gpu.nvidia.com/nvswitch-domain", "Leave it out: the driver publishes no NVLink domain"),
    ],
)
def test_what_is_known_of_a_name_that_the_server_refuses_is_its_advice(name: str, advice: str) -> None:
    (found,) = findings(CLAIM.replace("NAME", name).replace("CLASS", "gpu.nvidia.com"), "DRA104,DRA601")
    assert found.code == "DRA104"
    assert found.advice.startswith(advice)


def test_a_name_that_nobody_knows_gets_no_invented_domain() -> None:
    found = of("colour", "accelerator")
    assert found.advice.startswith("Put a domain before it: the driver's, or resource.kubernetes.io for pcieRoot")
    assert not found.changes


SELECTOR = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors: [{cel: {expression: 'TEXT'}}]
"""


@pytest.mark.parametrize("name", ["model", "productName", "architecture"])
def test_a_key_is_read_as_the_advice_says(name: str) -> None:
    text = SELECTOR.replace("TEXT", f'device.attributes["gpu.nvidia.com/{name}"] == "x"')
    (found,) = findings(text, "DRA112,DRA218")
    (change,) = found.changes
    assert isinstance(change, Splice)
    assert found.advice == f"Read it as {change.text}"
    assert ".model" not in change.text


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        (
            'device.capacity["gpu.nvidia.com"].memory',
            'Compare it with an amount: device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
        ),
        ('quantity("40Gi")', "Write a condition on the device"),
        ('"x"', "Write a condition on the device"),
    ],
)
def test_a_value_is_no_condition(expression: str, advice: str) -> None:
    (found,) = findings(SELECTOR.replace("TEXT", expression), "DRA112")
    assert found.advice.startswith(advice)


def test_the_question_of_a_message_is_that_of_the_fix() -> None:
    text = CLAIM.replace("count", "cnt").replace("CLASS", "a").replace("NAME", "gpu.nvidia.com/architecture")
    (found,) = findings(text, "DRA101")
    assert "did you mean 'count'?" in found.message
    assert (found.advice, found.safety) == ("Did you mean count?", "unsafe")


GUARDED = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'EXPRESSION'}}]}
"""
READ = 'device.attributes["gpu.nvidia.com"]'


@pytest.mark.parametrize(
    ("expression", "guarded"),
    [
        (f'"numaNode" in {READ} ? {READ}.numaNode == 0 : true', True),
        (f"has({READ}.numaNode) && {READ}.numaNode == 0", True),
        (f"{READ}.?numaNode.orValue(0) == 0", True),
        (f"{READ}.numaNode == 0", False),
        (f"has({READ}.uuid) && {READ}.numaNode == 0", False),
    ],
)
def test_what_is_guarded_is_no_error_on_every_device(expression: str, guarded: bool) -> None:
    (found,) = findings(GUARDED.replace("EXPRESSION", expression), "DRA601")
    assert found.severity == ("warning" if guarded else "error")
    assert ("it is read only where a device has it, which none does" in found.message) is guarded


@pytest.mark.parametrize(
    ("expression", "decided"),
    [
        (f'{READ}.model == "H100" || device.driver == "gpu.nvidia.com"', True),
        (f'device.driver == "gpu.nvidia.com" || {READ}.model == "H100"', True),
        (f'device.driver == "another.example.com" && {READ}.model == "H100"', True),
        (f'device.driver == "another.example.com" ? {READ}.model == "H100" : true', True),
        (f'{READ}.model == "H100" || {READ}.architecture == "Hopper"', False),
        (f'device.driver == "gpu.nvidia.com" && {READ}.model == "H100"', False),
        (f'device.driver == "gpu.nvidia.com" ? {READ}.model == "H100" : true', False),
    ],
)
def test_an_error_that_the_rest_decides_without_is_no_error(expression: str, decided: bool) -> None:
    text = CLAIM.replace("CLASS", "gpu.nvidia.com").replace(
        "count: 2", f"count: 2, selectors: [{{cel: {{expression: '{expression}'}}}}]"
    )
    found = next(each for each in findings(text.replace("NAME", "a.b/c"), "DRA601") if "model" in each.message)
    assert found.severity == ("warning" if decided else "error")
