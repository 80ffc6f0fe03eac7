"""What lint proposes is true of what it was proposed for, and what it calls an error is one."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from kubectl_dra.api.slices import Device
from kubectl_dra.cel.environment import Environment
from kubectl_dra.cel.errors import EvaluationError
from kubectl_dra.cel.program import compile_expression
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.finding import LocatedFinding
from kubectl_dra.manifests.changes import Splice
from tests.lint.cases import report_of
from tests.lint.support import selecting

READ = 'device.attributes["gpu.nvidia.com"]'
PRODUCTS = [product for driver in catalogue().drivers.values() for product in driver.products]


def found(expression: str, device_class: str = "gpu.nvidia.com", snapshot: str = "") -> Sequence[LocatedFinding]:
    saved = {"snapshot": snapshot} if snapshot else {}
    return report_of(selecting(expression, device_class), **saved).findings


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_part_of_a_products_name_is_a_part_of_it(product: str) -> None:
    """CEL minds the case of letters."""
    for written in (product.lower(), product.upper(), product.replace(" ", "-"), product.partition(" ")[2].lower()):
        for finding in found(f'{READ}.productName == "{written}"'):
            if finding.code == "DRA213":
                assert f'"{product}"' in finding.advice or finding.advice.count('"') > 2
                part = re.search(r'contains\("(.*?)"\)', finding.advice)
                assert part is None or part[1] in product, finding.advice


@pytest.mark.parametrize("product", PRODUCTS)
def test_capitals_are_corrected_to_those_of_a_product(product: str) -> None:
    for part in (product.lower(), product.partition(" ")[2].lower()):
        for finding in found(f'{READ}.productName.contains("{part}")'):
            for change in finding.changes if finding.code == "DRA213" else ():
                assert isinstance(change, Splice) and change.text in product


def test_the_part_keeps_the_names_case_and_says_what_has_it_too() -> None:
    advice = [finding.advice for finding in found(f'{READ}.productName == "nvidia l4"')]
    assert len(advice) == 1 and '"NVIDIA L4"' in advice[0]
    assert 'productName.contains("L4"), which NVIDIA L40, NVIDIA L40S contain, too' in advice[0]


ATTRIBUTES = {
    "productName": {"string": "NVIDIA A100-SXM4-40GB"},
    "driverVersion": {"version": "550.54.15"},
    "cudaDriverVersion": {"version": "12.4.0"},
    "gpuModuleID": {"int": 3},
    "iommuFDEnabled": {"bool": True},
}
NAMES = {"S": "productName", "V": "driverVersion", "I": "gpuModuleID", "B": "iommuFDEnabled"}
EXPRESSIONS = [
    '"A100" in {S}',
    '{S}.contains("A100") && "x" in {S}',
    '{V}.startsWith("550")',
    '{V}.startsWith("550.5")',
    '{I}.contains("3")',
    '{B}.matches("true")',
    "{V} < {V}",
    "size({I}) > 1",
    "{S}.size() > 2",
    '{S}.string == "x"',
    "{S} && {B}",
    "!{S}",
    '{B} && {S} != "a"',
    "{I} + 1 == 4",
    '"A100" in {D}.?productName.orValue("")',
    "{I} > 1.5",
    "{V}.major() == 550",
    '{V}.compareTo(semver("1.2.3")) > 0',
    '{S}.matches("A.*")',
    "{V}.size() > 1",
    'string({V}) == "1"',
    'string({I}) == "3"',
    '{S}[0] == "N"',
    '[{S}].exists(x, x == "a")',
    '"A100" in {S}.split(" ")',
    '{S} in {{"a": 1}}',
    "{S} == {I}",
    '{B} ? {S} == "a" : {I} == 1',
    "{B} < true",
    "{B} + {B} == 2",
    "{I} % 2 == 1",
    "-{S} == 1",
    'cel.bind(p, {S}, p.contains("A100"))',
    '{D}.?productName.orValue("").lowerAscii().contains("a100")',
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_operation_of_a_wrong_type_is_found_where_it_is_an_error(expression: str) -> None:
    text = expression.format(D=READ, **{name: f"{READ}.{attribute}" for name, attribute in NAMES.items()})
    program = compile_expression(Environment.for_release(), text)
    device = Device.from_json("gpu.nvidia.com", {"name": "gpu-0", "attributes": ATTRIBUTES})
    outcome = program.evaluate_devices([device])[0]
    told = [finding for finding in found(text) if finding.code == "DRA219"]
    assert bool(told) == isinstance(outcome, EvaluationError), (outcome, told)
    for finding in told:
        for change in finding.changes:
            assert isinstance(change, Splice)
            put = text[: change.start] + change.text + text[change.end :]
            answer = compile_expression(Environment.for_release(), put).evaluate_devices([device])[0]
            assert not isinstance(answer, EvaluationError), put


def test_a_class_and_a_claim_are_not_joined() -> None:
    """Their terms are all asked for, so that only another class helps, or to drop one."""
    (finding,) = found('device.driver == "gpu.amd.com"')
    assert finding.code == "DRA215" and finding.severity == "warning"
    assert finding.advice == "Ask for class gpu.amd.com, or drop this term."
    classes = "".join(
        f"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: {name}}}\nspec:\n  selectors:\n"
        f"  - cel: {{expression: 'device.driver == \"{driver}\"'}}\n---\n"
        for name, driver in (("a", "gpu.nvidia.com"), ("mi300", "gpu.amd.com"))
    )
    (finding,) = found('device.driver == "gpu.amd.com"', "a", classes)
    assert finding.severity == "error" and finding.advice == "Ask for class mi300, or drop this term."
    (finding,) = found('device.driver == "x.example.com"', "a", classes)
    assert finding.advice == "Drop this term: no class of the cluster is for such devices."
