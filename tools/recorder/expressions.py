"""Device selectors made up from a seed: the grammar of CEL, and the functions that a release's compiler declares.

Expressions are typed, so that most compile; a slip now and then makes one that does not, or that fails on a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tools.recorder.literals import (
    ADDRESSES,
    ARGUMENTS,
    DOMAINS,
    FIXED,
    FORMATS,
    LITERALS,
    NETWORKS,
    PATHS,
    QUANTITIES,
    URLS,
    VERSIONS,
    ZONES,
)

Type = tuple[Any, ...]
"""A type's name, then its parameters; a type parameter is ("", name)."""
Scope = tuple[tuple[str, Type], ...]

BOOL, INT, UINT, DOUBLE, STRING, DYN = (("bool",), ("int",), ("uint",), ("double",), ("string",), ("dyn",))
SEMVER, QUANTITY = ("kubernetes.Semver",), ("kubernetes.Quantity",)
PLAIN = (BOOL, INT, INT, UINT, DOUBLE, STRING, STRING)
BINARY = {f"_{sign}_": sign for sign in ("!=", "%", "&&", "*", "+", "-", "/", "<=", "<", "==", ">=", ">", "||")} | {
    "@in": "in"
}
INTERNAL = ("@not", "@sort", "__", "cel.@", "_?._")
ALIASES = ("_in_", "in")
AUTHORIZATION = "kubernetes.authorization"
"""The compiler declares these functions, but no variable has their types."""
MESSAGES = (
    "BoolValue",
    "BytesValue",
    "DoubleValue",
    "FloatValue",
    "Int32Value",
    "Int64Value",
    "StringValue",
    "UInt64Value",
)
TOKENS = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ".",
    "?",
    ":",
    "&&",
    "||",
    "!",
    "-",
    "in",
    "==",
    '"',
    "'",
    "\\",
    "`a`",
    "=",
    "&",
    "1",
    "a",
    "/",
    "//",
    "\n",
)


class Expressions:
    """An endless source of expressions of one seed."""

    def __init__(self, functions: list[dict[str, Any]], seed: int) -> None:
        self.random = Random(seed)
        self._by_result: dict[str, dict[str, list[tuple[bool, list[Type], Type]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for one in functions:
            name = one["name"]
            if name.startswith(INTERNAL) or name in ALIASES or AUTHORIZATION in str(one):
                continue
            result = _type(one["result"])
            arguments = [_type(argument) for argument in one["arguments"] or ()]
            self._by_result[result[0]][name].append((one["member"], arguments, result))
        self.names = sorted({name for names in self._by_result.values() for name in names})

    def families(self) -> dict[str, Callable[[], str]]:
        """What makes an expression of each family."""
        return {
            "any": lambda: self.of(BOOL, self.random.randint(2, 4), ()),
            "selector": self.selector,
            "call": self.call,
            "number": self.numbers,
            "quantity": self.quantities,
            "deep": self.deep,
            "costly": self.costly,
            "broken": self.broken,
            "message": self.message,
        }

    # --- typed expressions -----------------------------------------------------------------------

    def of(self, wanted: Type, depth: int, scope: Scope) -> str:
        """An expression that has this type, but for a slip."""
        chance = self.random.random()
        if chance < 0.015:
            wanted = self.random.choice((*PLAIN, SEMVER, QUANTITY, ("list", INT), ("map", STRING, INT), DYN))
        elif chance < 0.03:
            return f"dyn({self.of(wanted, depth - 1, scope)})"
        if depth <= 0 or chance > 0.85:
            return self.leaf(wanted, scope)
        if chance < 0.22:
            return self.macro(wanted, depth - 1, scope)
        if chance < 0.27 and wanted != DYN:
            parts = [self.of(kind, depth - 1, scope) for kind in (BOOL, wanted, wanted)]
            return "({} ? {} : {})".format(*parts)
        return self.called(wanted, depth - 1, scope) or self.leaf(wanted, scope)

    def leaf(self, wanted: Type, scope: Scope) -> str:
        known = [name for name, kind in scope if kind == wanted]
        if known and self.random.random() < 0.7:
            return self.random.choice(known)
        head = wanted[0]
        pick = self.random.choice
        if head in PATHS and self.random.random() < 0.5:
            return self.path(head)
        if head == "string" and self.random.random() < 0.15:
            return "device.driver"
        if head == "bool" and self.random.random() < 0.1:
            return "device.allowMultipleAllocations"
        if head in LITERALS:
            return pick(LITERALS[head])
        if head in ("", "dyn"):
            return self.leaf(pick((*PLAIN, SEMVER, QUANTITY)), scope)
        if head == "list":
            return f"[{', '.join(self.leaf(wanted[1], scope) for _ in range(self.random.randint(0, 4)))}]"
        if head == "map":
            if wanted == ("map", STRING, DYN):
                return f'device.attributes["{pick(DOMAINS)}"]'
            entries = (
                f"{self.leaf(wanted[1], scope)}: {self.leaf(wanted[2], scope)}"
                for _ in range(self.random.randint(0, 3))
            )
            return f"{{{', '.join(entries)}}}"
        if head == "optional_type":
            return pick(("optional.of({})", "optional.ofNonZeroValue({})", "optional.none()")).format(
                self.leaf(wanted[1], scope)
            )
        text = _constructed(head)
        return pick(text) if text else self.leaf(pick(PLAIN), scope)

    def path(self, head: str) -> str:
        """An attribute or a capacity, mostly one that has this type."""
        pick = self.random.choice
        field = "capacity" if head == QUANTITY[0] else "attributes"
        domain, name = f'"{pick(DOMAINS)}"', pick(PATHS[head])
        if self.random.random() < 0.08:
            domain = "device.driver"
        default = {
            "bool": "false",
            "int": "0",
            "string": '"none"',
            SEMVER[0]: 'semver("0.0.0")',
            QUANTITY[0]: 'quantity("0")',
        }[head]
        return pick(
            (
                f"device.{field}[{domain}].{name}",
                f"device.{field}[{domain}].{name}",
                f'device.{field}[{domain}]["{name}"]',
                f"device.{field}[{domain}].?{name}.orValue({default})",
                f'device.{field}[?{domain}][?"{name}"].orValue({default})',
                f'device.{field}[{domain}][?"{name}"].value()',
                f"(has(device.{field}[{domain}].{name}) ? device.{field}[{domain}].{name} : {default})",
                f"cel.bind(a, device.{field}[{domain}], a.{name})",
            )
        )

    def called(self, wanted: Type, depth: int, scope: Scope) -> str | None:
        """A call of some function that has this result; None if none has."""
        names: dict[str, list[tuple[bool, list[Type], Type]]] = {}
        for head in (wanted[0], "", "dyn") if wanted != DYN else (self.random.choice(PLAIN)[0], "", "dyn"):
            for name, overloads in self._by_result.get(head, {}).items():
                names.setdefault(name, []).extend(overloads)
        if not names:
            return None
        name = self.random.choice(sorted(names))
        return self.call_of(name, self.random.choice(names[name]), wanted, depth, scope)

    def call_of(
        self, name: str, overload: tuple[bool, list[Type], Type], wanted: Type, depth: int, scope: Scope
    ) -> str | None:
        member, parameters, result = overload
        bound: dict[str, Type] = {}
        _bind(result, wanted, bound)
        pick = self.random.choice

        def concrete(kind: Type) -> Type:
            if kind[0] == "":
                return bound.setdefault(kind[1], pick(PLAIN))
            return (kind[0], *(concrete(part) for part in kind[1:]))

        texts = [self.of(concrete(kind), depth - self.random.randint(0, 1), scope) for kind in parameters]
        fitting = ARGUMENTS.get(name)
        index = 0 if name == "format" else len(texts) - 1
        if fitting and parameters[index] == STRING and self.random.random() < 0.9:
            text = pick(fitting)
            texts[index] = f'"{text}"'
        if name == "format" and self.random.random() < 0.9:
            kinds = [pick((*PLAIN, DYN, ("list", INT))) for _ in range(self.random.randint(0, 2))]
            texts[1] = f"[{', '.join(self.of(kind, 0, scope) for kind in kinds)}]"
        if name.startswith("get") and len(texts) == 2:
            texts[1] = pick(ZONES)
        if name in BINARY:
            return f"({texts[0]} {BINARY[name]} {texts[1]})"
        if name in ("!_", "-_"):
            return f"{name[0]}({texts[0]})" if self.random.random() < 0.5 else f"{name[0]}{texts[0]}"
        if name == "_?_:_":
            return "({} ? {} : {})".format(*texts)
        if name == "_[_]":
            return f"{texts[0]}[{texts[1]}]"
        if name == "_[?_]":
            return f"{texts[0]}[?{texts[1]}]"
        if name == "optional.unwrap" or not member:
            return f"{name}({', '.join(texts)})"
        return f"{texts[0]}.{name}({', '.join(texts[1:])})"

    def macro(self, wanted: Type, depth: int, scope: Scope) -> str:
        pick = self.random.choice
        element = pick(PLAIN)
        name = pick(("x", "y", "k", "v", "i"))
        other = pick(("n", "w"))
        source = self.of(("list", element), depth, scope)
        if self.random.random() < 0.25:
            element, source = (
                STRING,
                pick(
                    (
                        f'device.attributes["{pick(DOMAINS)}"]',
                        "device.attributes",
                        "device.capacity",
                        self.of(("map", STRING, INT), depth, scope),
                    )
                ),
            )
        inner = (*scope, (name, element))
        two = (*scope, (other, element if element == STRING and source.startswith("device") else INT), (name, element))

        def each(kind: Type, names: Scope = inner) -> str:
            return self.of(kind, depth, names)

        value = self.of(element, depth, scope)
        if wanted[0] == "list" and len(wanted) > 1:
            same = (*scope, (name, wanted[1]))
            return pick(
                (
                    lambda: f"{source}.map({name}, {each(wanted[1])})",
                    lambda: f"{source}.map({name}, {each(BOOL)}, {each(wanted[1])})",
                    lambda: f"{self.of(wanted, depth, scope)}.filter({name}, {each(BOOL, same)})",
                    lambda: f"{source}.transformList({other}, {name}, {each(wanted[1], two)})",
                    lambda: f"{source}.transformList({other}, {name}, {each(BOOL, two)}, {each(wanted[1], two)})",
                    lambda: f"{self.of(wanted, depth, scope)}.sortBy({name}, {each(pick(PLAIN), same)})",
                )
            )()
        if wanted[0] == "map" and len(wanted) > 2:

            def entry() -> str:
                return f"{each(wanted[1], two)}: {each(wanted[2], two)}"

            return pick(
                (
                    lambda: f"{source}.transformMap({other}, {name}, {each(wanted[2], two)})",
                    lambda: f"{source}.transformMapEntry({other}, {name}, {{{entry()}}})",
                )
            )()
        if wanted[0] == "optional_type" and len(wanted) > 1:
            maybe = self.of(("optional_type", element), depth, scope)
            return pick(
                (
                    lambda: f"{maybe}.optMap({name}, {each(wanted[1])})",
                    lambda: f"{maybe}.optFlatMap({name}, {each(wanted)})",
                )
            )()
        if wanted == BOOL and self.random.random() < 0.8:
            kind = pick(("all", "exists", "exists_one", "existsOne"))
            if self.random.random() < 0.25:
                return f"{source}.{kind}({other}, {name}, {each(BOOL, two)})"
            return f"{source}.{kind}({name}, {each(BOOL)})"
        return f"cel.bind({name}, {value}, {each(wanted)})"

    # --- families ---------------------------------------------------------------------------------

    def selector(self) -> str:
        """What people write: comparisons of attributes and capacities."""
        pick = self.random.choice
        terms = []
        for _ in range(self.random.randint(1, 4)):
            head = pick(("bool", "int", "string", "string", SEMVER[0], QUANTITY[0]))
            path = self.path(head)
            if head == "bool":
                terms.append(pick((path, f"!{path}", f"{path} == true")))
            elif head in ("int", "string"):
                literal = pick(LITERALS[head])
                sign = pick(("==", "!=", "<", ">="))
                more = ", ".join(self.random.sample(LITERALS[head], 3))
                extra = f'{path}.matches("{pick(ARGUMENTS["matches"])}")' if head == "string" else f"{path} % 2 == 0"
                terms.append(
                    pick((f"{path} {sign} {literal}", f"{path} in [{more}]", extra, f"{path} {sign} {self.path(head)}"))
                )
            else:
                literal = pick(_constructed(head))
                terms.append(
                    pick(
                        (
                            f"{path}.compareTo({literal}) >= 0",
                            f"{path}.isGreaterThan({literal})",
                            f"{path} == {literal}",
                            f"{literal}.isLessThan({path})",
                            f"{literal} != {path}",
                        )
                    )
                )
        joined = terms[0]
        for term in terms[1:]:
            joined += pick((" && ", " && ", " || ")) + term
        return pick(("", 'device.driver == "gpu.example.com" && ')) + joined

    def call(self) -> str:
        """One call of any function, so that each is met often."""
        name = self.random.choice(self.names)
        overloads = [one for names in self._by_result.values() for one in names.get(name, ())]
        overload = self.random.choice(overloads)
        result = overload[2]
        text = self.call_of(name, overload, result, self.random.randint(0, 1), ())
        assert text is not None
        return self.judged(text, result)

    def judged(self, text: str, kind: Type) -> str:
        """A condition on a value of this type."""
        if kind == BOOL:
            return text
        if kind[0] in ("optional_type", "", "dyn"):
            return f"{text} == {self.leaf(kind, ())}"
        if kind[0] == "list":
            return self.random.choice(
                (
                    f"size({text}) > 1",
                    f"{text} == {self.leaf(kind, ())}",
                    f"{text}.exists(x, x == {self.leaf(DYN, ())})",
                )
            )
        if kind[0] in ("int", "uint", "double", "string", "google.protobuf.Duration", "google.protobuf.Timestamp"):
            return f"{text} {self.random.choice(('==', '!=', '<', '>='))} {self.leaf(kind, ())}"
        return f"{text} {self.random.choice(('==', '!='))} {self.leaf(kind, ())}"

    def numbers(self) -> str:
        """Comparisons and arithmetic of numbers, near the bounds, and of unlike types."""
        pick = self.random.choice

        def number() -> str:
            head = pick(("int", "uint", "double"))
            literal = pick(LITERALS[head])
            return pick(
                (
                    f"dyn({literal})",
                    f"dyn({literal})",
                    literal,
                    f"{pick(('int', 'uint', 'double'))}({literal})",
                    f"({literal} {pick('+-*/%')} {pick(LITERALS[head])})",
                    self.path("int"),
                    f"int(string({literal}))",
                )
            )

        left, right = number(), number()
        return pick(
            (
                *(f"{left} {sign} {right}" for sign in ("==", "!=", "<", ">=")),
                f"{left} in [{right}, {number()}]",
                f"{{{left}: 1}}[{right}] == 1",
                f"[{left}] == [{right}]",
                f"[{left}, {right}].{pick(('min', 'max', 'sum'))}() == {number()}",
                f"string({left}) == string({right})",
                f"{{{left}: 1}} == {{{right}: {pick(('1', '1.0', '1u'))}}}",
                f'"%{pick(("d", "s", ".2f", "e", "x"))}".format([{left}]) == "{pick(("1", "1.00", "NaN", "1f"))}"',
            )
        )

    def quantities(self) -> str:
        """Arithmetic of quantities, in which earlier releases change their receiver."""
        pick = self.random.choice

        def one(depth: int, names: tuple[str, ...]) -> str:
            if depth and self.random.random() < 0.6:
                argument = pick((one(depth - 1, names), pick(LITERALS["int"])))
                return f"{one(depth - 1, names)}.{pick(('add', 'sub'))}({argument})"
            if names and self.random.random() < 0.6:
                return pick(names)
            return pick((self.path(QUANTITY[0]), f'quantity("{pick(QUANTITIES)}")'))

        def condition(names: tuple[str, ...]) -> str:
            left, right = one(2, names), one(1, names)
            return pick(
                (
                    f"{left} == {right}",
                    f"{left}.isGreaterThan({right})",
                    f"{left}.isLessThan({right})",
                    f"{left}.compareTo({right}) == {pick(('0', '1', '-1'))}",
                    f"{left}.isInteger()",
                    f"sign({left}) == {pick(('0', '1', '-1'))}",
                    f"{left}.asInteger() >= {pick(LITERALS['int'])}",
                    f"{left}.asApproximateFloat() > {pick(LITERALS['double'])}",
                )
            )

        if self.random.random() < 0.5:
            bound = one(1, ())
            return f"cel.bind(q, {bound}, {condition(('q',))} {pick(('&&', '||'))} {condition(('q',))})"
        return condition(())

    def deep(self) -> str:
        """Nesting and length near what the parser and the evaluator take."""
        pick = self.random.choice
        count = pick((3, 10, 30, 60, 100, 200, 249, 250, 251, 400))
        return pick(
            (
                lambda: "(" * count + "true" + ")" * count,
                lambda: "!" * count + "true",
                lambda: "-" * count + "1 == 1",
                lambda: "[" * count + "]" * count + " == []",
                lambda: " && ".join([self.path("bool")] * count),
                lambda: " || ".join(
                    f"device.driver == {text}" for text in self.random.choices(LITERALS["string"], k=count)
                ),
                lambda: " + ".join(["1"] * count) + f" == {count}",
                lambda: "true ? " * min(count, 100) + "true" + " : false" * min(count, 100),
                lambda: "device.driver" + ".trim()" * count + ' == ""',
                lambda: "[1]" + "".join(f".map(x{i}, x{i} + 1)" for i in range(min(count, 30))) + " == [1]",
                lambda: "".join(f"[1].exists(x{i}, " for i in range(min(count, 16))) + "true" + ")" * min(count, 16),
                lambda: (
                    "".join(f"cel.bind(x{i}, {i}, " for i in range(min(count, 60))) + "x0 == 0" + ")" * min(count, 60)
                ),
                lambda: f'"{"a" * count}" == device.driver',
                lambda: f"[{', '.join(self.of(INT, 1, ()) for _ in range(min(count, 60)))}].size() == {count}",
                lambda: "{1: " * min(count, 80) + "1" + "}" * min(count, 80) + " == {}",
            )
        )()

    def costly(self) -> str:
        """Loops and texts whose worst case is near the limit of costs."""
        pick = self.random.choice
        names = self.random.sample("abcd", self.random.randint(2, 4))
        sources = [
            pick(
                (
                    'device.attributes["gpu.example.com"]',
                    "device.attributes",
                    f"[{', '.join('12345678'[: self.random.randint(1, 8)])}]",
                    f"lists.range({pick((3, 10, 30, 100, 1000))})",
                    f'device.attributes["{pick(DOMAINS)}"].model.split("{pick("-, ")}")',
                    'device.capacity["gpu.example.com"]',
                    'device.driver.split("")',
                )
            )
            for _ in names
        ]
        body = pick(
            (
                f'string({names[0]}).matches("{pick(ARGUMENTS["matches"])}")',
                f"{names[0]} == {names[-1]}",
                "true",
                "false",
                f"dyn({names[0]}) in device.attributes",
                f'(device.driver + string({names[0]})).contains("{pick("ax.")}")',
                f"[{names[0]}, {names[-1]}].isSorted()",
                f'string({names[0]}).replace("a", "bb") == "x"',
                f"quantity(string({names[0]})).isInteger()",
            )
        )
        for name, source in zip(names, sources, strict=True):
            body = pick(
                (
                    f"{source}.all({name}, {body})",
                    f"{source}.exists({name}, {body})",
                    f"{source}.filter({name}, {body}).size() >= 0",
                    f"{source}.map({name}, {body}).size() > 1",
                    f"{source}.exists_one({name}, {body})",
                )
            )
        return body

    def broken(self) -> str:
        """A selector with a token too many, too few, or another."""
        text = whole = self.random.choice((self.selector, self.call, lambda: self.of(BOOL, 2, ())))()
        for _ in range(self.random.randint(1, 2)):
            at = self.random.randrange(len(text) + 1)
            cut = self.random.choice((0, 1, 1, 2))
            text = text[:at] + self.random.choice((*TOKENS, "")) + text[at + cut :]
        return text or whole

    def message(self) -> str:
        """Messages of protobuf, which expressions may build."""
        pick = self.random.choice
        name = pick(MESSAGES)
        head = {"B": "bool", "D": "double", "F": "double", "I": "int", "S": "string", "U": "uint"}[name[0]]
        head = "bytes" if name == "BytesValue" else head
        value = pick(LITERALS[pick((head, head, head, pick(("int", "string", "null_type"))))])
        built = f"google.protobuf.{name}{{value: {value}}}"
        kind, given = pick(("number", "string", "bool")), pick(LITERALS[pick(("double", "string", "bool"))])
        json = f"google.protobuf.Value{{{kind}_value: {given}}}"
        seconds, nanos = pick(LITERALS["int"]), pick(LITERALS["int"])
        span = f"google.protobuf.{pick(('Duration', 'Timestamp'))}{{seconds: {seconds}, nanos: {nanos}}}"
        left, right = pick((built, json, span)), pick((value, built, json, "null", f"google.protobuf.{name}{{}}"))
        return pick(
            (
                f"{left} == {right}",
                f"{left} != {right}",
                f"type({left}) == {pick(LITERALS['type'])}",
                f"{left}.value == {value}",
                f"has({left}.value)",
                f"[{left}] == [{right}]",
            )
        )


def expressions(functions: list[dict[str, Any]], seed: int, count: int) -> Iterator[tuple[str, str]]:
    """Names and expressions of one seed, all families in turn, none twice."""
    source = Expressions(functions, seed)
    families = source.families()
    seen: set[str] = set()
    made = 0
    while made < count:
        for family in (
            "any",
            "selector",
            "call",
            "any",
            "number",
            "quantity",
            "call",
            "any",
            "costly",
            "deep",
            "broken",
            "message",
        ):
            text = families[family]()
            if text in seen or len(text.encode()) > 3000:
                continue
            seen.add(text)
            yield f"{family}-{seed}-{made}", text
            made += 1
            if made >= count:
                return


def fixed() -> Iterator[tuple[str, str]]:
    """The expressions that are written by hand."""
    for number, text in enumerate(FIXED):
        yield f"fixed-{number}", text


def _type(given: list[Any]) -> Type:
    return tuple(_type(part) if isinstance(part, list) else part for part in given)


def _bind(declared: Type, wanted: Type, bound: dict[str, Type]) -> None:
    """Binds the type parameters of a declared result to what is wanted."""
    if declared[0] == "":
        bound[declared[1]] = wanted
        return
    for inner, outer in zip(declared[1:], wanted[1:], strict=False):
        if isinstance(inner, tuple) and isinstance(outer, tuple):
            _bind(inner, outer, bound)


def _constructed(head: str) -> list[str]:
    """Calls that make a value of a type of Kubernetes, of good and bad texts."""
    made = {
        QUANTITY[0]: ("quantity", QUANTITIES),
        SEMVER[0]: ("semver", VERSIONS),
        "net.IP": ("ip", ADDRESSES),
        "net.CIDR": ("cidr", NETWORKS),
        "kubernetes.URL": ("url", URLS),
    }
    if head == "kubernetes.NamedFormat":
        return [f"format.{name}()" for name in FORMATS[:-1]] + [f'format.named("{name}").value()' for name in FORMATS]
    if head not in made:
        return []
    function, texts = made[head]
    return [f'{function}("{text}")' for text in texts]
