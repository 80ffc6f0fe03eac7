"""The table of functions as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubectl_dra.cel import Environment, EvaluationError, library
from tests.cel.library.support import compiled, holds


def test_the_index_lists_what_the_families_have() -> None:
    listed = {name: names.split() for name, names in library._FAMILIES.items()}
    actual = {name: [one.name for one in library.family(name)] for name in listed}
    # A name may occur twice within a family, as `ip` does for addresses and networks.
    assert {name: sorted(set(names)) for name, names in actual.items()} == {
        name: sorted(names) for name, names in listed.items()
    }


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("release", ["1.34", "1.35", "1.36", "1.37"])
def test_overload_ids_are_unique_in_a_release(release: str, stored: bool) -> None:
    environment = Environment.for_release(release, stored=stored)
    ids = [overload.id for name in library.table() for overload in environment.overloads(name) or ()]
    assert len(ids) == len(set(ids)) > 200


def test_everything_is_implemented_or_left_to_the_evaluator() -> None:
    evaluated_elsewhere = {
        "_?_:_",
        "_&&_",
        "_||_",
        "@not_strictly_false",
        "_==_",
        "_!=_",
        "_[_]",
        "_[?_]",
        "_?._",
        "@in",
        "or",
        "orValue",
        "cel.@mapInsert",
    }
    for name, function in library.table().items():
        bare = [one.id for one in function.overloads if one.implementation is None]
        if function.implementation is None and bare:
            assert name in evaluated_elsewhere


def test_shared_names_try_the_older_family_first() -> None:
    assert [*dict.fromkeys(one.id for one in library.table()["indexOf"].overloads)] == [
        "list_a_index_of_int",
        "string_index_of_string",
        "string_index_of_string_int",
    ]
    assert [one.id for one in library.table()["compareTo"].overloads] == [
        "quantity_compare_to",
        "semver_compare_to",
    ]
    assert [one.id for one in library.table()["string"].overloads][-2:] == ["ip_to_string", "cidr_to_string"]


@pytest.mark.parametrize(
    "expression",
    [
        "math.greatest(1, 2) == 2",
        'base64.encode(b"a") == "YQ=="',
        'regex.replace("a", "b", "c") == "a"',
        '"abc".reverse() == "cba"',
        "[1, 2].sum(1) == 3",
        'authorizer.path("/") == "a"',
        'quantity("1").sign() == 1',
        'quantity("1") > quantity("0")',
        'quantity(1) == quantity("1")',
        'string(quantity("1")) == "1"',
    ],
)
def test_what_kubernetes_does_not_have(expression: str) -> None:
    from kubectl_dra.cel.errors import CompileError

    with pytest.raises(CompileError):
        compiled(expression)


@pytest.mark.parametrize(
    ("expression", "new", "stored"),
    [
        ("[2, 1].sort() == [1, 2]", "1.35", "1.34"),
        ("lists.range(1) == [0]", "1.35", "1.34"),
        ("[1].first().hasValue()", "1.34", "1.34"),
        ('semver("v1", true) == semver("1.0.0")', "1.34", "1.33"),
        ('"a".includes("a")', "1.38", "1.36"),
    ],
)
def test_releases(expression: str, new: str, stored: str) -> None:
    from kubectl_dra.cel.errors import CompileError

    for minor in range(34, 38):
        for is_stored, since in ((False, new), (True, stored)):
            known = minor >= int(since.partition(".")[2])
            if known:
                assert compiled(expression, f"1.{minor}", is_stored)
            else:
                with pytest.raises(CompileError):
                    compiled(expression, f"1.{minor}", is_stored)


def test_looking_up_a_function_loads_its_family_only() -> None:
    code = (
        "import sys; from kubectl_dra.cel.library import table; table()['compareTo'];"
        "print([name for name in ('addresses', 'urls', 'formatting', 'lists', 're2')"
        " if f'kubectl_dra.cel.library.{name}' in sys.modules or name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# What 1.37 answers otherwise than the releases before it.


BEFORE = [
    'cel.bind(q, quantity("1.5Gi"), q.add(1).compareTo(q) == 0)',
    '"hello".indexOf("", 99) == 99',
    "lists.range(-1) == []",
]


@pytest.mark.parametrize("expression", BEFORE)
def test_it_is_true_up_to_1_36_only(expression: str) -> None:
    assert holds(expression, "1.36")
    try:
        assert not holds(expression, "1.37")
    except EvaluationError as error:
        assert "lists.range" in error.message


def test_the_new_answers() -> None:
    assert holds('cel.bind(q, quantity("1.5Gi"), q.add(1).compareTo(q) > 0)')
    assert holds('"hello".indexOf("", 99) == 5')
