"""Random selectors and devices, and the smallest of them that still shows a difference.

The selectors read attributes and capacities in every way that the language has, and take every kind of step after
them. Types go wrong at run time all the time, which is what the fast ways to an answer have to get right.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.api.slices import Device


class Tree(NamedTuple):
    """A piece of an expression: ``{}`` in the template stands for a smaller piece, if there are any."""

    template: str
    parts: tuple[Tree, ...] = ()

    def __str__(self) -> str:
        return self.template.format(*self.parts) if self.parts else self.template


_PLAIN: Final = ('device.attributes["d"]', "device.attributes.d")
_DOMAINS: Final = (
    *[_PLAIN[0]] * 9,
    *[_PLAIN[1]] * 3,
    *['device.attributes["e"]'] * 3,
    *["device.attributes[device.driver]"] * 3,
    "device.attributes['nosuch']",
    "dyn(device).attributes['d']",
    "dyn(device.attributes).d",
    "dyn(device.attributes['d'])",
    "device.attributes['' + 'd']",
    "(device.driver == 'd' ? device.attributes['d'] : device.attributes['e'])",
    "cel.bind(a, device.attributes, a['d'])",
    "cel.bind(a, device.attributes['d'], a)",
)
_OPTIONAL_DOMAINS: Final = ("device.attributes[?'d']", "device.attributes.?d", "device.attributes[?device.driver]")
_NAMES: Final = (
    *[".m"] * 9, *[".n"] * 4, *["['m']"] * 4, "['e/m']", "['d/m']", "['' + 'm']", ".nosuch", "['']", "[device.driver]",
    ".string", ".d", "['m' == 'm' ? 'm' : 'n']",
)  # fmt: skip
_OPTIONAL_NAMES: Final = (".?m", "[?'m']", "[?'n']", ".?nosuch", "[?device.driver]")
_OPTIONAL_STEPS: Final = (
    ".orValue('a') == 'a'", ".orValue(1) != 1", ".value() == 'a'", ".hasValue()", ".optMap(v, v == 'a').orValue(true)",
    ".or(optional.of('a')).value() == 'a'", ".optMap(v, v) == optional.of('a')", ".?string.hasValue()",
    ".optFlatMap(v, optional.of(v)).hasValue()", ".string == optional.of('a')", "[0].hasValue()", "[?0].hasValue()",
    " == optional.of('a')", " == optional.none()", ".orValue(dyn(1)) in ['a', 1]", ".value().string == 'a'",
)  # fmt: skip
_STEPS: Final = (
    ".string", ".string", ".value", ".int", ".bool", ".version", "['string']", "[0]", "[0]", "[-1]", "[0u]", "[true]",
    "['m']", "[device.driver]", "[?0].orValue('a')", ".?string.orValue('a')", ".?string.hasValue()", ".value()",
    ".orValue('a')", ".hasValue()", ".or(optional.of('a'))", ".optMap(v, v)", ".size()", ".startsWith('a')",
    ".endsWith('0')", ".contains('a')", ".matches('^a.*0$')", ".matches('a' + '1')", ".lowerAscii()", ".upperAscii()",
    ".split('-')", ".split('.')[0]", ".substring(1)", ".replace('a', 'b')", ".charAt(0)", ".trim()", ".indexOf('0')",
    ".find('[0-9]+')", ".findAll('[0-9]')", ".compareTo(semver('1.0.0'))", ".major()", ".minor()", ".patch()",
    ".isGreaterThan(semver('1.0.0'))", ".isLessThan(semver('2.0.0'))", ".compareTo(quantity('1Gi'))", ".asInteger()",
    ".isInteger()", ".add(quantity('1'))", ".exists(x, x == 'a')", ".all(x, x == 'a')", ".exists_one(x, x == 'a')",
    ".map(x, x)", ".filter(x, x != 'a')", ".map(x, x == 'a', [x])", ".isSorted()", ".sum()", ".min()", ".max()",
    ".indexOf('a')", ".includes('a')", ".exists(i, v, v == 'a')", ".getHours()", ".join('-')", ".format([1])",
    ".reverse()", ".flatten()", ".distinct()", ".sort()",
)  # fmt: skip
_AMOUNT_STEPS: Final = (
    ".isGreaterThan(quantity('1Gi'))", ".isLessThan(quantity('2'))", ".asInteger() == 1", ".isInteger()", ".sign() > 0",
    ".asApproximateFloat() > 1.5", ".add(quantity('1')).compareTo(quantity('2')) == 0", ".sub(1).sign() == 1",
    " == quantity('1Gi')", " != quantity('1024Mi')", " in [quantity('1Gi')]", ".compareTo(device.capacity.d.n) >= 0",
    ".add(device.capacity.d.m).isGreaterThan(device.capacity.d.m)",
)  # fmt: skip
AROUND: Final = (
    "dyn({})", "string({})", "int({})", "double({})", "bool({})", "type({})", "size({})", "semver({})", "quantity({})",
    "isSemver({})", "isQuantity({})", "optional.of({})", "optional.ofNonZeroValue({})", "[{}]", "[{}][0]",
    "{{'k': {}}}.k", "{{{}: 1}}", "-{}", "!{}", "duration({})", "ip({})", "isIP({})", "math.greatest({}, 1)",
    "[{}, 'a'].size()", "[?optional.of({})]", "cel.bind(b, {}, b)", "cel.bind(device, {}, device)",
    "['a', 'b'].filter(x, x == {})", "[1, 2].map(x, x == {})", "lists.range({})", "sets.contains(['a'], [{}])",
)  # fmt: skip
CONSTANTS: Final = (
    *["'a'"] * 5, "'A100'", "'1.0.0'", "'a-100'", "''", "'d'", *["1"] * 3, "0", "-2", "1u", "1.0", "true", "false",
    "null", "b'a'", "semver('1.0.0')", "semver('v1.0', true)", "quantity('1Gi')", "quantity('2')", "device.driver",
    "device.allowMultipleAllocations", "['a', 1]", "{'m': 'a'}", "optional.none()", "optional.of('a')", "device",
    "duration('1s')", "'a' + 'b'", "1 / 0", "9223372036854775807",
)  # fmt: skip
RELATIONS: Final = (*["=="] * 5, *["!="] * 2, "<", "<=", ">", ">=", *["in"] * 2)
OPERATORS: Final = ("+", "+", "-", "*", "/", "%")
_JOINED: Final = (
    *["{} && {}"] * 4, *["{} || {}"] * 4, "!({})", "!({})", "({} ? {} : {})", "({} ? {} : {})",
    "cel.bind(b, {}, b && {})", "cel.bind(b, {}, {})", "({}) == ({})", "[{}, {}].all(x, x)", "[{}, {}].exists(x, x)",
)  # fmt: skip


def selector(random: random.Random) -> Tree:
    """An expression that is true or false, as far as its parts are."""
    depth = random.choice((0, 0, 1, 1, 2, 2, 3))
    if random.random() < 0.3:
        comparisons = [_comparison(random) for _ in range(random.choice((1, 1, 1, 2)))]
        return Tree(" && ".join(["{}"] * len(comparisons)), tuple(comparisons))
    if random.random() < 0.3:
        return Tree(" && ".join(["{}"] * 3), tuple(_truth(random, depth - 1) for _ in range(3)))
    return _truth(random, depth)


def _truth(random: random.Random, depth: int) -> Tree:
    if depth > 0:
        template = random.choice(_JOINED)
        return Tree(f"({template})", tuple(_truth(random, depth - 1) for _ in range(template.count("{}"))))
    kind = random.random()
    if kind < 0.35:
        return _comparison(random)
    if kind < 0.5:
        return _amount_compared(random)
    if kind < 0.7:
        return Tree(f"{{}} {random.choice(RELATIONS)} dyn({{}})", (_value(random), _value(random)))
    if kind < 0.78:
        last = random.choice((".m", ".n", ".nosuch", ".m.string", "[0].m", ".?m.string", ".?d.m"))
        return Tree("has({})", (Tree(random.choice(_DOMAINS) + last),))
    if kind < 0.84:
        return Tree("{} in {}", (Tree(random.choice(("'m'", "'d'", "'e/m'", "device.driver"))), _whole(random)))
    if kind < 0.9:
        return Tree(random.choice(_OF_WHOLE), (_whole(random),))
    if kind < 0.95:
        domain, name = random.choice(_OPTIONAL_DOMAINS), random.choice((*_NAMES, *_OPTIONAL_NAMES))
        if random.random() < 0.5:
            domain, name = random.choice(_DOMAINS), random.choice(_OPTIONAL_NAMES)
        return Tree("{}" + random.choice(_OPTIONAL_STEPS), (Tree(domain + name),))
    return _value(random)


def _comparison(random: random.Random) -> Tree:
    """What a column may answer by itself, and what only looks like it."""
    if random.random() < 0.3:
        return _amount_compared(random)
    other = Tree(random.choice(("'a'", "'a'", "'A100'", "''"))) if random.random() < 0.7 else _constant(random)
    return Tree(f"{{}} {random.choice(('==', '!='))} {{}}", (_attribute_read(random), other))


_OF_WHOLE: Final = (
    "{}.exists(k, k == 'm')", "{}.all(k, v, v == 'a')", "{}.size() == 1", "{}.exists_one(k, k == 'n')",
    "{}.map(k, k).size() > 1", "{} == {{'m': 'a'}}", "{}.transformList(k, v, v).size() == 1", "{0} == {0}",
    "{}.exists(k, v, type(v) == string)", "cel.bind(w, {}, w.size() == w.size())", "cel.bind(w, {}, 'm' in w)",
    "{}.all(k, v, v == device.attributes.d.m)", "{0}.exists_one(k, {0}[k] == 1)", "device.attributes.d.m in {}",
)  # fmt: skip


def _whole(random: random.Random) -> Tree:
    text = random.choice((*_DOMAINS, "device.attributes", "device.attributes"))
    return Tree(text if random.random() < 0.7 else _of_capacity(text))


def _of_capacity(text: str) -> str:
    return text.replace("attributes", "capacity")


def _attribute_read(random: random.Random) -> Tree:
    """An attribute, with or without steps further."""
    tree = Tree(random.choice(_DOMAINS) + random.choice(_NAMES))
    if random.random() < 0.05:
        tree = Tree(_of_capacity(tree.template))
    while random.random() < 0.35:
        tree = Tree(("dyn({})" if tree.parts else "{}") + random.choice(_STEPS), (tree,))
    return tree


def _amount_compared(random: random.Random) -> Tree:
    read = Tree(_of_capacity(random.choice(_DOMAINS)) + random.choice(_NAMES))
    if random.random() < 0.4:
        return Tree("{}" + random.choice(_AMOUNT_STEPS), (read,))
    if random.random() < 0.2:
        step = random.choice((".value", "[0]", "['value']", ".add(quantity('1'))"))
        read = Tree("dyn({})" + step, (read,))
    limit = random.choice(("'1Gi'", "'1Gi'", "'2'", "'1500m'", "''", "'x'", "dyn('1Gi')", "'-1'", "'1e3'"))
    relation, zero = random.choice(("==", "!=", "<", "<=", ">", ">=")), random.choice(("0", "0", "0", "1", "0.0", "0u"))
    return Tree(f"{{}}.compareTo(quantity({limit})) {relation} {zero}", (read,))


def _constant(random: random.Random) -> Tree:
    text = random.choice(CONSTANTS)
    return Tree(text) if random.random() < 0.8 else Tree("dyn({})", (Tree(text),))


def _value(random: random.Random) -> Tree:
    kind = random.random()
    if kind < 0.6:
        return _attribute_read(random)
    if kind < 0.78:
        return _constant(random)
    if kind < 0.85:
        return Tree(random.choice(AROUND), (_value(random),))
    if kind < 0.93:
        return Tree(f"({{}} {random.choice(OPERATORS)} {{}})", (_value(random), _value(random)))
    return Tree("({} ? {} : {})", (_truth(random, 0), _value(random), _value(random)))


_ATTRIBUTES: Final = ("m", "n", "d/m", "d/n", "e/m", "e/n", "d", "string")
_TEXTS: Final = ("a", "a", "a", "A100", "a-100", "", "1.0.0", "d", "m")
_AMOUNTS: Final = ("0", "1", "2", "1500m", "1Gi", "1024Mi", "40Gi", "-1", "1e3", "1.5Ti", "10000000000000000000")


def _attribute(random: random.Random, lists: bool) -> Mapping[str, Any]:
    kind = random.random()
    if kind < 0.55:
        return {"string": random.choice(_TEXTS)}
    if kind < 0.7:
        return {"int": random.choice((0, 1, 1, 2, -2, 2**63 - 1))}
    if kind < 0.8:
        return {"bool": random.random() < 0.5}
    if kind < 0.97 and not lists:
        return {"version": random.choice(("1.0.0", "1.0.0+b", "1.0.0-rc.1", "10.2.0"))}
    if kind < 0.97:
        several: dict[str, list[Any]] = {
            "strings": list(_TEXTS),
            "ints": [0, 1, 2],
            "bools": [True, False],
            "versions": ["1.0.0", "2.0.0"],
        }
        name = random.choice(list(several))
        return {name: random.sample(several[name], random.randint(0, 2))}
    return random.choice(({}, {"version": "x"}, {"int": 2**63}, {"strings": ["a"]}, {"string": "a", "int": 1}))


def device(random: random.Random, *, lists: bool = False) -> Device:
    """A device with few names and values, so that many are equal in what a selector reads."""
    attributes, capacity = (
        [*(["m"] if random.random() < 0.7 else ()), *random.sample(_ATTRIBUTES[1:], random.randint(0, most))]
        for most in (3, 2)
    )
    return Device(
        driver="d" if random.random() < 0.75 else "e",
        name=f"gpu-{random.randrange(10_000)}",
        attributes={name: _attribute(random, lists) for name in attributes},
        capacity={name: {"value": random.choice(_AMOUNTS)} for name in capacity},
        allow_multiple_allocations=random.random() < 0.3,
    )


def devices(random: random.Random, number: int, *, lists: bool = False) -> list[Device]:
    """Devices of which some are one object, as readers of large snapshots make them."""
    made = [device(random, lists=lists) for _ in range(number)]
    return [*made, *random.choices(made, k=number // 3)]


def slices(random: random.Random, number: int) -> list[dict[str, Any]]:
    """ResourceSlices of one driver, a node each, whose devices differ in texts of an attribute and of a capacity.

    They are valid, and some are equal but for their names.
    """
    name, amount = random.choice(("m", "d/m")), random.choice(("m", "d/n"))
    base = []
    for _ in range(random.randint(1, 2)):
        one = device(random)
        plain = {key: value for key, value in one.attributes.items() if "string" in value and len(value) == 1}
        base.append((plain, one.capacity, random.random() < 0.2))
    made: list[dict[str, Any]] = []
    for index in range(number):
        entries = [
            {
                "name": f"gpu-{index}-{place}",
                "attributes": {**attributes, name: {"string": random.choice(_TEXTS)}},
                "capacity": {**capacity, amount: {"value": random.choice(_AMOUNTS)}},
                **({"allowMultipleAllocations": True} if several else {}),
            }
            for place, (attributes, capacity, several) in enumerate(base)
        ]
        pool = {"name": f"n{index}", "generation": 1, "resourceSliceCount": 1}
        made.append({"driver": "d", "nodeName": f"n{index}", "pool": pool, "devices": entries})
    return made


def smaller(tree: Tree) -> Iterator[Tree]:
    """The tree with one piece less in some place."""
    yield from tree.parts
    for index, part in enumerate(tree.parts):
        for less in (*smaller(part), *map(Tree, ("true", "'a'", 'device.attributes["d"].m'))):
            if len(str(less)) < len(str(part)):
                yield tree._replace(parts=(*tree.parts[:index], less, *tree.parts[index + 1 :]))


def fewer(some: Sequence[Device]) -> Iterator[list[Device]]:
    """One device less, or a device with one attribute or capacity less."""
    for index, one in enumerate(some):
        before, after = some[:index], some[index + 1 :]
        yield [*before, *after]
        for name in one.attributes:
            yield [
                *before,
                one.with_attributes({key: value for key, value in one.attributes.items() if key != name}),
                *after,
            ]


def smallest(
    tree: Tree, some: Sequence[Device], differs: Callable[[str, Sequence[Device]], bool]
) -> tuple[str, Sequence[Device]]:
    """The smallest selector and devices that still differ, found step by step."""
    while True:
        less = next((one for one in smaller(tree) if differs(str(one), some)), None)
        if less is not None:
            tree = less
            continue
        left = next((one for one in fewer(some) if differs(str(tree), one)), None)
        if left is None:
            return str(tree), some
        some = left
