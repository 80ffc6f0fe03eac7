"""Digits in texts of users become numbers by ``text.whole_number``, which takes neither ``²`` nor 5000 of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from kubectl_dra.admission.pod_security import ENFORCE, ENFORCE_VERSION, enforced
from kubectl_dra.api.labels import Requirement, requirement_matches
from kubectl_dra.api.nodes import NodeTaint, Toleration
from kubectl_dra.api.quantity import Quantity
from kubectl_dra.cel.library.numbers import parse_int, parse_uint
from kubectl_dra.data.driver_releases import newest_before
from kubectl_dra.report.phrases import compressed
from kubectl_dra.scheduling.simple_filters import tolerates
from kubectl_dra.text import whole_number
from tests.test_layers import FILES, PACKAGE, nodes

WITH_A_BOUND: Final = {
    "api/decimals.py": "in parts",
    "api/quantity.py": "by the digits that an exact 64-bit number has",
    "api/releases.py": "by the pattern",
    "api/semver.py": "to 20 digits",
    "cel/library/addresses.py": "to three digits, with the messages of Go",
    "cel/library/numbers.py": "by the pattern of a timestamp",
    "cli/main.py": "by the patterns",
    "cluster/duplicates.py": "any failure means not newer",
    "data/driver_releases.py": "by the pattern",
    "explain/answer_notes.py": "by the pattern",
    "explain/remedies/claim_edits.py": "by the pattern",
    "lint/analysis/rejection_fixes.py": "by the pattern",
    "lint/rules/requests.py": "by the pattern",
    "lsp/server.py": "by the pattern",
    "manifests/values.py": "to 20 digits",
    "migrate/reverse/labels.py": "by the pattern",
    "migrate/reverse/requests.py": "by the pattern",
    "migrate/vendors/label_to_cel.py": "by the patterns",
    "report/html/lines.py": "to 18 digits",
    "report/phrases.py": "by the pattern",
    "scheduling/simple_filters.py": "by the pattern",
    "taint/apply.py": "by the pattern",
    "text.py": "here",
}
"""Modules that read digits in another way, and how these are bounded."""
NO_USERS_TEXT: Final = {
    "admission/server/pod_placement.py": "whether the form is right",
    "allocation/extended_resources.py": "written by us",
    "api/claims.py": "a number of the API; what is none is refused",
    "api/codec.py": "a number of the API; what is none is refused",
    "api/pods.py": "which characters; no number is made",
    "api/slices.py": "a number of the API; what is none is refused",
    "api/taints.py": "a number of the API; what is none is refused",
    "cel/closures/calls.py": "a value of CEL",
    "cel/closures/chains.py": "a value of CEL",
    "cel/closures/messages.py": "a value of CEL",
    "cel/library/conversions.py": "a value of CEL",
    "cel/library/formatting.py": "a value of CEL",
    "cel/library/lists.py": "a value of CEL",
    "cel/library/operators.py": "a value of CEL",
    "cel/library/support.py": "a truth value",
    "cel/program.py": "a cost",
    "cel/values.py": "a value of CEL",
    "cluster/reader.py": "a number of the API; what is none is refused",
    "cluster/identities.py": "written by us",
    "cluster/pseudonyms.py": "which characters; no number is made",
    "explain/eviction.py": "seconds",
    "lint/analysis/cel_terms.py": "a value of CEL",
    "lint/analysis/claim_requests.py": "a number",
    "lint/analysis/driver_values.py": "which characters; no number is made",
    "manifests/nodes.py": "a place",
    "migrate/inline_patches.py": "an index, written by us",
    "migrate/kustomize/existing_patches.py": "a place",
    "process.py": "the kernel's",
}
READS: Final = frozenset(("isdigit", "isdecimal", "isnumeric"))


def modules_that_read_digits() -> Iterator[str]:
    """Modules with ``isdigit`` and the like, or ``int`` of what is no arithmetic."""
    for path in FILES:
        for call in nodes(path):
            if not isinstance(call, ast.Call):
                continue
            function = call.func
            asks = isinstance(function, ast.Attribute) and function.attr in READS
            makes = isinstance(function, ast.Name) and function.id == "int" and len(call.args) == 1
            if asks or (makes and not is_arithmetic(call.args[0])):
                yield path.relative_to(PACKAGE).as_posix()


def is_arithmetic(value: ast.expr) -> bool:
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(value, ast.BinOp) or (isinstance(function, ast.Attribute) and function.attr == "total_seconds")


def test_no_other_module_reads_digits() -> None:
    """``whole_number`` does. Whoever needs another way says here how it is bounded."""
    assert set(modules_that_read_digits()) == WITH_A_BOUND.keys() | NO_USERS_TEXT.keys()


@pytest.mark.parametrize("text", ["", "²", "1²", "٣", "-1", "+1", " 1", "1_0", "1.0", "9" * 5000, "1" * 19])
def test_what_is_no_whole_number(text: str) -> None:
    assert whole_number(text) is None


def test_leading_zeros_do_not_count() -> None:
    assert whole_number("0" * 5000 + "7", 1) == 7
    assert whole_number("0" * 5000) == 0
    assert whole_number("1" * 19, 19) == int("1" * 19)


@pytest.mark.parametrize("digits", ["²", "٣", "9" * 5000])
def test_what_a_snapshot_may_say(digits: str) -> None:
    """What else reads digits of objects takes them for no number."""
    policy = enforced({ENFORCE: "baseline", ENFORCE_VERSION: f"v1.{digits}"})
    assert str(policy) == "baseline:latest"
    assert compressed([f"gpu-{digits}", "gpu-1"]) == f"gpu-{digits} + 1 more"
    assert newest_before(digits, {"x": "1.0"}) in ("", "x")
    assert not requirement_matches(Requirement("x", "Gt", ("1",)), {"x": digits})
    bound, value = Toleration(key="x", operator="Gt", value="1"), NodeTaint(key="x", value=digits, effect="NoSchedule")
    assert not tolerates(bound, value, comparing=True)
    assert parse_int(digits) is None and parse_uint(digits) is None


def test_leading_zeros_in_numbers_of_the_api() -> None:
    """Go reads any number of them."""
    zeros = "0" * 5000
    assert parse_int(f"-{zeros}7") == -7 and parse_uint(f"{zeros}7") == 7
    assert Quantity.parse(f"1e{zeros}3") == Quantity.of(1000)
