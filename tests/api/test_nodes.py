from __future__ import annotations

import pytest

from kubectl_dra.api.labels import InvalidNodeSelector, Requirement, requirement_matches
from kubectl_dra.api.nodes import Node, NodeSelector

LABELS = {"zone": "a", "gpus": "8", "huge": "9223372036854775808", "word": "x"}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("none", "In", ("a",), False),
        ("zone", "NotIn", ("b",), True),
        ("none", "NotIn", ("a",), True),
        ("zone", "NotIn", ("a",), False),
        ("zone", "Exists", (), True),
        ("none", "Exists", (), False),
        ("none", "DoesNotExist", (), True),
        ("gpus", "Gt", ("7",), True),
        ("gpus", "Gt", ("8",), False),
        ("gpus", "Lt", ("9",), True),
        ("none", "Lt", ("9",), False),
        ("word", "Gt", ("1",), False),
        ("huge", "Gt", ("1",), False),
    ],
)
def test_requirement(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    assert requirement_matches(Requirement(key, operator, values), LABELS) is expected


@pytest.mark.parametrize(
    ("operator", "values"),
    [("In", ()), ("NotIn", ()), ("Exists", ("a",)), ("Gt", ("a",)), ("Lt", ("1", "2")), ("Like", ("a",))],
)
def test_requirement_the_scheduler_cannot_parse(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(InvalidNodeSelector):
        requirement_matches(Requirement("zone", operator, values), LABELS)


def test_selector_terms() -> None:
    node = Node.named("n1", LABELS)
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    by_zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
    assert NodeSelector.from_json({"nodeSelectorTerms": [by_name]}).matches(node)
    assert not NodeSelector.from_json({"nodeSelectorTerms": [by_zone]}).matches(node)
    assert NodeSelector.from_json({"nodeSelectorTerms": [by_zone, by_name]}).matches(node)
    assert not NodeSelector.from_json({"nodeSelectorTerms": [{**by_zone, **by_name}]}).matches(node)
    # A term without requirements selects nothing.
    assert not NodeSelector.from_json({"nodeSelectorTerms": [{}]}).matches(node)
    assert not NodeSelector.from_json({}).matches(node)


def test_node_from_json() -> None:
    node = Node.from_json(
        {
            "metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {"unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}], "allocatable": {"cpu": "4"}},
        }
    )
    assert (node.name, node.unschedulable, node.ready) == ("n", True, False)
    assert [str(taint) for taint in node.taints] == ["k:NoSchedule"]
    assert Node.from_json({"metadata": {"name": "n"}}).ready is None


def test_the_text_of_a_long_selector_is_short() -> None:
    def expression(key: str, *values: str) -> dict[str, object]:
        return {"key": key, "operator": "In", "values": values or ("a",)}

    def text(*terms: list[dict[str, object]]) -> str:
        return str(NodeSelector.from_json({"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}))

    assert text([expression("x"), expression("y", "a", "b")], []) == "x In (a) and y In (a, b) or nothing"
    told = "x0 In (a) or x1 In (a) or x2 In (a) or x3 In (a)"
    assert text(*([expression(f"x{number}")] for number in range(4))) == told
    assert text(*([expression(f"x{number}")] for number in range(10000))) == f"{told} or one of 9,996 more terms"
    told = "x In (a) and x In (a) and x In (a) and x In (a) and 2 more"
    assert text([expression("x")] * 6) == told
    assert text([expression("x", *"abcdef")]) == "x In (a, b, c, d and 2 more)"
