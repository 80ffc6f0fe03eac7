"""Device selectors that nobody would write: steps that may be missing, functions on values of any type, loops in
loops, texts and numbers at the edge of the grammar, and parts of some expressions in the place of parts of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tools.recorder.expressions import BINARY, BOOL, DYN, INT, INTERNAL, PLAIN, STRING, Expressions, Type
from tools.recorder.literals import DOMAINS, FIXED, LITERALS, ZONES

NAMES = ("x", "y", "k", "i")
MISSING = ("0", "1", "2", "-1", "5", "1u", "1.0", "0.5", '"a"', '"b"', '"model"', "true", "null", "dyn(1)", "dyn('a')")
WORDS = ("index", "model", "a", "b", "memory", "nope", "x", "mig", "`a`", "`a-b/c.d`", "`in`")
ESCAPES = (
    *("\\a", "\\b", "\\f", "\\n", "\\r", "\\t", "\\v", "\\\\", "\\?", '\\"', "\\'", "\\`", "\\x41", "\\X41", "\\u00e9"),
    *("\\U0001F600", "\\101", "\\377", "\\400", "\\8", "\\ud800", "\\U00110000", "\\x4", "\\q", "é", "✓", "😀", "\\0"),
    *("\\000", "\\xff", "a", " ", "\t", "'", '"', "`", "{", "%s", "\u200b", "\u2028", "\ufeff", "e\u0301"),
)
NUMBERS = (
    *(
        "1.",
        ".5",
        "1e",
        "1e+",
        "1E-2",
        "0x",
        "0xg",
        "0X1F",
        "00",
        "01",
        "1_000",
        "1u",
        "1U",
        "0xFFu",
        "1.5u",
        "-0",
        "- 1",
    ),
    *(
        "--1",
        "-(-1)",
        "9223372036854775808",
        "-9223372036854775808",
        "18446744073709551616u",
        "1e400",
        "-1e400",
        "1.e1",
    ),
    *(
        "1e-400",
        "0x7FFFFFFFFFFFFFFF",
        "0x8000000000000000",
        "-0x8000000000000000",
        "-0x8000000000000001",
        "0.1e1",
        "1d",
    ),
)
SPELT = (
    *(
        "true",
        "True",
        "null",
        "nil",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
    ),
    *("let", "loop", "package", "namespace", "return", "var", "void", "while", "false", "this"),
    *("_", "__x", "x1", "é"),
    *("int", "list", "map", "type", "dyn", "any", "bytes", "optional_type", "google.protobuf.Any", ".device", ".int"),
    *("google.protobuf.Struct", "net.IP", "kubernetes.Quantity", "kubernetes.authorization.Authorizer", "cel", "sets"),
)
SPACES = (" ", "  ", "\t", "\n", "\r\n", "\f", "// c\n", " // c", "/* c */", "\v", "\u00a0", "", ";")
VERBS = (
    "s",
    "d",
    "f",
    "e",
    "x",
    "X",
    "b",
    "o",
    "q",
    "%",
    ".0f",
    ".3f",
    ".20f",
    ".3e",
    ".s",
    ".2s",
    ".2d",
    "",
    "F",
    "#x",
)


class Wild:
    """An endless source of such expressions of one seed."""

    def __init__(self, functions: list[dict[str, Any]], seed: int, pool: list[str]) -> None:
        self.calm = Expressions(functions, seed)
        self.random: Random = self.calm.random
        self.pool = pool or list(FIXED)
        shapes = {
            (one["name"], bool(one["member"]), len(one["arguments"] or ()))
            for one in functions
            if not one["name"].startswith(INTERNAL)
        }
        self.shapes = sorted(shapes)
        self.families: dict[str, Callable[[], str]] = {
            "optional": self.optional,
            "unlike": self.unlike,
            "loop": self.loop,
            "text": self.text,
            "token": self.token,
            "time": self.time,
            "splice": self.splice,
            "built": self.built,
        }

    def pick(self, *among: Any) -> Any:
        """One of these."""
        return self.random.choice(among)

    def of(self, kind: Type, depth: int, *scope: tuple[str, Type]) -> str:
        """A typed expression."""
        return self.calm.of(kind, depth, scope)

    # --- steps that may be missing ---------------------------------------------------------------

    def optional(self) -> str:
        """A chain of steps, some of them optional, and what is done with the end of it."""
        chain = self.chain()
        other = self.pick(self.chain(), f"optional.of({self.value()})", "optional.none()")
        return str(
            self.pick(
                f"{chain} == {other}",
                f"{chain} == {self.value()}",
                f"{chain}.hasValue()",
                f"{chain}.value() == {self.value()}",
                f"{chain}.orValue({self.value()}) == {self.value()}",
                f"{chain}.or({other}).orValue({self.value()}) == {self.value()}",
                f"{chain}.optMap(x, {self.pick('x', '[x]', self.value(), 'x == x', 'x[0]', 'x.?a')}).hasValue()",
                f"{chain}.optFlatMap(x, {self.pick('x', 'optional.of(x)', 'x[?0]', 'x.?a', other)}).hasValue()",
                f"[?{chain}, {self.pick('', '?')}{other}].size() {self.pick('==', '<')} 2",
                f"{{?{self.pick('1', repr('a'))}: {chain}, 2: {self.value()}}}.size() == 1",
                f"{self.pick('[1, 2, 3]', '{1: 2}', 'dyn([1])')}[{self.pick('', '?')}{chain}] == {self.value()}",
                f"type({chain}) == optional_type",
                f"cel.bind(o, {chain}, o == o && o.hasValue() || o.{self.pick('a', '?a', 'orValue(1) == 1')})",
                f"has({chain}.{self.pick(*WORDS)})",
            )
        )

    def chain(self) -> str:
        """A value with one to four steps on it."""
        text = str(
            self.pick(
                "device.attributes",
                "device.capacity",
                f'device.attributes["{self.pick(*DOMAINS)}"]',
                "device",
                "[1, 2, 3]",
                "[[1], [2, 3]]",
                '[{"a": 1}, {"b": [1]}]',
                '{"a": {"b": 1}, "model": [1, 2]}',
                '{1: {"a": 2}, 2: {}}',
                "{1u: 'a', 2u: 'b'}",
                "{true: [1]}",
                "dyn([1, 'a', null])",
                'dyn({"a": [1, 2], "b": {"a": 1}})',
                "optional.of([1, 2])",
                'optional.of({"a": {"b": 1}})',
                "optional.none()",
                "optional.of(dyn({'a': optional.of(1)}))",
                f"({self.pick('true', 'device.allowMultipleAllocations')} ? [1, 2] : [3])",
                "device.attributes.map(k, k)",
                "[1, 2].map(x, [x])",
                'device.driver.split(".")',
            )
        )
        for _ in range(self.random.randint(1, 4)):
            text += self.step()
        return text

    def step(self) -> str:
        index = str(
            self.pick(*MISSING, *MISSING, "device.driver", f'device.attributes["{DOMAINS[0]}"].index', "[0][0]")
        )
        word = self.pick(*WORDS)
        return str(
            self.pick(f"[?{index}]", f"[?{index}]", f"[{index}]", f".?{word}", f".?{word}", f".{word}", f'[?"{word}"]')
        )

    def value(self) -> str:
        """A literal of any type."""
        return str(
            self.random.choice(LITERALS[self.pick("int", "int", "string", "bool", "double", "uint", "null_type")])
        )

    # --- functions on values of any type ----------------------------------------------------------

    def unlike(self) -> str:
        """A function, also one of authorization, on values whose types only the evaluation knows."""
        name, member, count = self.random.choice(self.shapes)
        values = [self.any_value() for _ in range(count)]
        if self.random.random() < 0.05:
            values.append(self.any_value())
        call = _call(name, member, values)
        return str(
            self.pick(
                call,
                f"dyn({call})",
                f"{call} == {self.any_value()}",
                f"type({call}) == {self.pick(*LITERALS['type'])}",
                f"size({call}) > 0",
                f"[{call}].exists(x, x == {self.any_value()})",
                f"{call} || true",
                f"optional.of({call}).hasValue()",
            )
        )

    def any_value(self) -> str:
        kind = self.pick(
            *PLAIN, DYN, ("bytes",), ("list", INT), ("list", STRING), ("map", STRING, INT), ("map", STRING, DYN),
            ("kubernetes.Quantity",), ("kubernetes.Semver",), ("net.IP",), ("net.CIDR",), ("kubernetes.URL",),
            ("google.protobuf.Duration",), ("google.protobuf.Timestamp",), ("type",), ("null_type",),
            ("optional_type", INT), ("list", DYN),
        )  # fmt: skip
        text = self.of(kind, self.random.randint(0, 1))
        return text if self.random.random() < 0.25 else f"dyn({text})"

    # --- loops ------------------------------------------------------------------------------------

    def loop(self) -> str:
        """Loops in loops over lists and maps, whose variables may hide each other."""
        return self.looped(3, ())

    def looped(self, depth: int, names: tuple[str, ...]) -> str:
        value = self.pick(*names, *names, self.value()) if names else self.value()
        if not depth:
            other = self.pick(*names, self.value()) if names else self.value()
            return str(
                self.pick(
                    f"{value} {self.pick('==', '!=', '<', 'in', '>=')} {other}",
                    f"dyn({value}) == {other}",
                    "true",
                    "false",
                    f"1 / {value} > 0",
                    f"has({value}.a)",
                    f"{value}.size() > 0",
                    f"type({value}) == type({other})",
                    f'string({value}) != "a"',
                    f"{value}[0] == {other}",
                    f"{value}",
                )
            )
        source = self.pick(
            *names,
            "[1, 2, 3]",
            "[]",
            '["a", "b"]',
            '{"a": 1, "b": 2}',
            "{1: [2]}",
            "[[1, 2], []]",
            "device.attributes",
            f'device.attributes["{DOMAINS[0]}"]',
            "device.capacity",
            "lists.range(4)",
            "dyn([1, 'a', null, [2]])",
            "[true, false]",
            "{}",
            'device.driver.split(".")',
            "[1, 2].map(i, [i])",
            "[optional.of(1), optional.none()]",
        )
        one, two = self.pick(*NAMES), self.pick(*NAMES)
        body = self.looped(depth - 1, (*names, one))
        both = self.looped(depth - 1, (*names, one, two))
        test = self.pick("all", "exists", "exists_one", "existsOne")
        return str(
            self.pick(
                f"{source}.{test}({one}, {body})",
                f"{source}.{test}({one}, {body})",
                f"{source}.{test}({one}, {two}, {both})",
                f"{source}.filter({one}, {body}).size() {self.pick('==', '>')} {self.pick('0', '1', '2')}",
                f"{source}.map({one}, {body}) == {source}",
                f"{source}.map({one}, {body}, {one}).{test}({two}, {self.looped(depth - 1, (*names, two))})",
                f"{source}.transformList({one}, {two}, {both}).{test}({one}, {one} == {self.value()})",
                f"{source}.transformList({one}, {two}, {both}, {two}).size() > 1",
                f"{source}.transformMap({one}, {two}, {both}).size() > 1",
                f"{source}.transformMap({one}, {two}, {both}, {one}) == {source}",
                f"{source}.transformMapEntry({one}, {two}, {{{two}: {one}}}).size() > 0",
                f"{source}.sortBy({one}, {self.pick(one, body, f'-{one}')}) == {source}",
                f"cel.bind({one}, {source}, {body})",
                f"optional.of({source}).optMap({one}, {body}).orValue(false)",
                f"({body} {self.pick('&&', '||')} {self.looped(depth - 1, names)})",
                f"({body if not names else self.looped(depth - 1, names)} ? {self.looped(0, names)} : false)",
            )
        )

    # --- texts, tokens, times ----------------------------------------------------------------------

    def literal(self) -> str:
        """A text or bytes in one of the ways to write them."""
        inner = "".join(self.random.choice(ESCAPES) for _ in range(self.random.randint(0, 4)))
        quote = self.pick('"', "'", '"""', "'''")
        return f"{self.pick('', '', '', 'r', 'R', 'b', 'B', 'br', 'rb')}{quote}{inner}{quote}"

    def text(self) -> str:
        one, two = self.literal(), self.literal()
        verb = "%" + self.pick(*VERBS)
        shown = self.pick(self.any_value(), self.value(), one)
        return str(
            self.pick(
                f"{one} == {two}",
                f"{one} + {two} == {one}",
                f"size({one}) == {self.pick('0', '1', '2', '3')}",
                f"bytes({one}) == b{two}",
                f"string({one}) == {two}",
                f'"{verb}".format([{shown}]) == {two}',
                f'"{verb} {"%" + self.pick(*VERBS)}".format([{shown}, {self.value()}]).size() > 3',
                f"{one}.split({two}).size() == 2",
                f"{one}.split({two}, {self.pick('0', '1', '-1', '2')}).join({two}) == {one}",
                f"{one}.replace({two}, {self.literal()}, {self.pick('0', '1', '-1')}) == {one}",
                f"{one}.substring({self.pick('0', '1', '2', '-1')}) == {two}",
                f"{one}.substring({self.pick('0', '1')}, {self.pick('1', '2', '9')}) == {two}",
                f"{one}.{self.pick('indexOf', 'lastIndexOf')}({two}) == {self.pick('0', '-1')}",
                f"{one}.{self.pick('indexOf', 'lastIndexOf')}({two}, {self.pick('0', '1', '9')}) >= 0",
                f"{one}.{self.pick('lowerAscii', 'upperAscii', 'trim')}() == {two}",
                f"{one}.charAt({self.pick('0', '1', '4')}) == {two}",
                f"strings.quote({one}) == {two}",
                f"{one}.matches({two})",
                f"{self.pick('int', 'uint', 'double', 'bool', 'duration', 'timestamp')}({one}) == {self.value()}",
                f"{one} {self.pick('<', '<=', '>', '>=', 'in')} {two}",
                f"{{{one}: 1}}[{two}] == 1",
            )
        )

    def token(self) -> str:
        """Numbers, words, spaces and comments at the edge of what the parser takes."""
        number, word, space = self.pick(*NUMBERS), self.pick(*SPELT), self.pick(*SPACES)
        text = str(
            self.pick(
                f"{number} == {self.pick(*NUMBERS)}",
                f"{word} == {self.pick(*SPELT)}",
                f"[{number}].exists({word}, {word} == {number})",
                f"{{{number}: {word}}}.size() == 1",
                f"device.{word} == 1",
                f"device.attributes.{word}.{self.pick(*SPELT)} == 1",
                f"cel.bind({word}, {number}, {word} == {word})",
                f"{word}({number}) == {number}",
                f"type({number}) == {word}",
                f"has(device.attributes.{word})",
                f"{{'a': 1,}}.size() == [{number},].size()",
                f"[{number},,1].size() == 1",
                f"{word}{{}} == {word}{{}}",
                f"{word}{{a: {number}}}.a == 1",
                f"device.driver.{word}() == {number}",
                f"1 {self.pick('+', '-', '*', '/', '%')} {number} {self.pick('<', '==', '>')} {number}",
                f"true ? {number} : {number} == 1",
                f"true ? true : {number} == 1 ? false : true",
                f"!{number}",
                f"1 < 2 {self.pick('<', '==', '!=')} {self.pick('true', '3')}",
                f"{number} in [{number}] in [true]",
            )
        )
        for _ in range(self.random.randint(0, 2)):
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + space + text[at:]
        return text

    def time(self) -> str:
        """Arithmetic and parts of times and spans near the bounds."""
        moment = self.pick(*LITERALS["google.protobuf.Timestamp"], f"timestamp({self.pick(*LITERALS['int'])})")
        span = self.pick(
            *LITERALS["google.protobuf.Duration"],
            f"duration({self.pick(*LITERALS['int'])})",
            'duration("9223372036.854775807s")',
            'duration("-9223372036854775808ns")',
            'duration("1.1.1s")',
            'duration(".5h")',
            'duration("1h-1m")',
        )
        other = self.pick(moment, *LITERALS["google.protobuf.Timestamp"])
        part = "get" + self.pick(
            *("FullYear", "Month", "DayOfYear", "DayOfMonth", "Date", "DayOfWeek", "Hours", "Minutes", "Seconds"),
            "Milliseconds",
        )
        zone = self.pick("", "", *ZONES, '"Asia/Kolkata"', '"+24:00"', '"-00:30"', '"1:2"', '"Local"', '"UTC+1"')
        return str(
            self.pick(
                f"{moment} + {span} == {other}",
                f"{moment} - {span} < {other}",
                f"{moment} - {other} == {span}",
                f"{span} + {moment} > {other}",
                f"{span} {self.pick('+', '-')} {span} == {self.pick(*LITERALS['google.protobuf.Duration'])}",
                f"{moment}.{part}({zone}) == {self.pick('0', '1', '12', '2024', '678')}",
                f"{span}.{part}() > {self.pick('0', '1', '60')}",
                f"dyn({self.pick(moment, span)}).{part}({zone}) >= 0",
                f"string({self.pick(moment, span)}) == {self.pick('', 'string')}({self.pick(moment, span)})",
                f"int({self.pick(moment, span)}) == {self.pick(*LITERALS['int'])}",
                f"{self.pick('int', 'double', 'string', 'duration')}(dyn({self.pick(moment, span)})) != null",
                f"-{span} == {span}",
                f"[{moment}, {other}].{self.pick('min', 'max', 'sum', 'isSorted', 'sort')}() == {moment}",
                f"[{span}, {span}].{self.pick('sum', 'max', 'distinct', 'isSorted')}() == {span}",
                f'"%{self.pick(*VERBS)}".format([{self.pick(moment, span)}]) != ""',
                f"{{{self.pick(moment, span)}: 1}}.size() == 1",
                f"{moment} in [{other}, {span}]",
            )
        )

    # --- parts in the place of others ---------------------------------------------------------------

    def splice(self) -> str:
        """An expression of which one or two parts are replaced by parts of other expressions."""
        text = str(self.random.choice(self.pool))
        for _ in range(self.random.randint(1, 2)):
            places = list(parts(text))
            given = self.random.choice(self.pool)
            offered = [given[start:end] for start, end in parts(given) if end - start < 200]
            if places and offered:
                start, end = self.random.choice(places)
                text = text[:start] + self.random.choice(offered) + text[end:]
        return text

    def built(self) -> str:
        """Lists and maps of unlike things, compared and searched."""
        kinds = (*PLAIN, DYN, BOOL)

        def deep(depth: int) -> str:
            if not depth or self.random.random() < 0.3:
                return self.of(self.random.choice(kinds), 0)
            items = [deep(depth - 1) for _ in range(self.random.randint(0, 3))]
            if self.random.random() < 0.5:
                return f"[{', '.join(items)}]"
            return f"{{{', '.join(f'{self.of(self.random.choice(PLAIN), 0)}: {item}' for item in items)}}}"

        one, two = deep(2), deep(2)
        return str(
            self.pick(
                f"{one} == {self.pick(one, two)}",
                f"{one} != dyn({self.pick(one, two)})",
                f"{one} in {self.pick(f'[{one}, {two}]', two)}",
                f"dyn({one}) in dyn({two})",
                f"size({one}) == {self.pick('0', '1', '2', '3')}",
                f"{one} + {two} == {two}",
                f"dyn({one})[{deep(0)}] == {deep(0)}",
                f"{one}[{deep(0)}][{deep(0)}] == {deep(0)}",
                f"{one}.{self.pick('distinct', 'sort', 'reverse', 'flatten', 'isSorted', 'sum', 'min')}() == {two}",
                f"sets.{self.pick('contains', 'equivalent', 'intersects')}({one}, {two})",
                f"{one}.{self.pick('includes', 'indexOf', 'lastIndexOf')}({two}) == {self.pick('true', '0')}",
                f"{one}.slice({self.pick('0', '1', '-1')}, {self.pick('0', '1', '2')}) == {two}",
                f"{one}.flatten({self.pick('0', '1', '-1', '2')}) == {two}",
                f"{one}.{self.pick('first', 'last')}().{self.pick('hasValue()', f'value() == {two}')}",
            )
        )


def _call(name: str, member: bool, values: list[str]) -> str:
    if name in BINARY and len(values) > 1:
        return f"({values[0]} {BINARY[name]} {values[1]})"
    if name in ("!_", "-_"):
        return name[0] + values[0]
    if name == "_?_:_":
        return "({} ? {} : {})".format(*values)
    if name in ("_[_]", "_[?_]"):
        return f"{values[0]}[{'?' if '?' in name else ''}{values[1]}]"
    if name == "optional.unwrap" or not member:
        return f"{name}({', '.join(values)})"
    return f"{values[0]}.{name}({', '.join(values[1:])})"


def parts(text: str) -> Iterator[tuple[int, int]]:
    """Where the operands between brackets and commas of an expression start and end; texts count as a whole."""
    open_at: list[int] = []
    quote = ""
    for at, sign in enumerate(text):
        if quote:
            if sign == quote and text[at - 1] != "\\":
                quote = ""
        elif sign in "\"'":
            quote = sign
        elif sign in "([{":
            open_at.append(at + 1)
        elif sign in ",)]}" and open_at:
            if text[open_at[-1] : at].strip():
                yield open_at[-1], at
            if sign == ",":
                open_at[-1] = at + 1
            else:
                open_at.pop()


def wild(functions: list[dict[str, Any]], seed: int, pool: list[str]) -> Iterator[tuple[str, str]]:
    """Names and expressions of one seed, without end and none twice; parts are taken from the ``pool``."""
    source = Wild(functions, seed, pool)
    seen: set[str] = set()
    while True:
        for name, family in source.families.items():
            text = family()
            if text not in seen and len(text.encode()) <= 3000:
                seen.add(text)
                yield f"{name}-{seed}-{len(seen) - 1}", text
