"""What somebody meant who wrote an expression or a field that the API server does not know."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel import ast
from kubectl_dra.cel.columns import Column
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.data.product_names import alike
from kubectl_dra.lint.analysis.cel_terms import Constant, column_of, constant
from kubectl_dra.lint.analysis.claim_requests import uses
from kubectl_dra.lint.analysis.domain_keys import meant_keys, misread_domains
from kubectl_dra.lint.analysis.driver_values import Published, common_part, is_measured, published, size_of
from kubectl_dra.lint.analysis.selector_targets import class_of, drivers_of, read_text
from kubectl_dra.lint.context import Context, items
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Set, Splice, value_at
from kubectl_dra.manifests.style import Style, block
from kubectl_dra.text import join, nearest, whole_number

if TYPE_CHECKING:
    from kubectl_dra.admission.server.model import Violation

_ORDER: Final = {"_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_METHODS: Final = ("isGreaterThan", "isLessThan", "compareTo")
_VERSION: Final = re.compile(r"v?[0-9]+(\.[0-9]+){1,2}")
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_FOREIGN: Final = re.compile(
    r"(?P<assigned>(?<![=!<>])=(?!=))|===+|(?<!&)&(?!&)|(?<!\|)\|(?!\|)|(?<![.\w])(?:and|or|AND|OR)(?!\w)"
    r"|(?<![.\w])(?:not|NOT)\b\s*|[\u201c\u201d\u201e]"
)
"""What other languages write for an operator, or prose for a quotation mark."""
STRINGS: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")


def expression_remedy(context: Context, path: FieldPath, text: str) -> Fix | None:
    """What to change in an expression that does not compile; None for an unknown kind of error."""
    root = parsed(text)
    if root is None:
        return _operators(path, text)
    attempts = (_ordered, _as_quantity, _as_argument)
    found = (next(filter(None, (attempt(node, text) for attempt in attempts)), None) for node in ast.walk(root))
    news = list(filter(None, found))
    keys = list(meant_keys(root, text, context, class_of(context, path)))
    news += [(key.advice, *key.edit) for key in keys if key.edit is not None]
    asked = class_of(context, path)
    misread = misread_domains(root, text, drivers_of(context, asked))
    news += [(f"Write {read.expression}", read.start, read.end, read.expression) for read in misread]
    changes: list[tuple[int, int, str]] = []
    for _, start, end, put in news:
        if not any(start < other_end and other_start < end for other_start, other_end, _ in changes):
            changes.append((start, end, put))
    if not changes:
        return Fix(keys[0].advice, expression=keys[0].expression) if keys else _condition(root, text)
    return Fix.guess(news[0][0], spliced(path, text, changes))


_TEXT_TESTS: Final = ("contains", "startsWith", "endsWith", "matches")


def cheaper(text: str) -> Fix | None:
    """What to write for a test of what orValue returns, whose size the API server takes for unlimited."""
    root = parsed(text)
    for node in ast.walk(root) if root is not None else ():
        if not isinstance(node, ast.Call) or node.function not in _TEXT_TESTS:
            continue
        inner = node.target
        while isinstance(inner, ast.Call) and inner.function != "orValue":
            inner = inner.target
        column = column_of(inner, {}) if isinstance(inner, ast.Call) else None
        if isinstance(inner, ast.Call) and column is not None and column.domain and column.id:
            read = read_text(column)
            new = f"has({read}) && {read}{text[inner.end : node.end]}"
            told = "The size of what orValue returns is unknown, so the largest counts; write"
            return Fix(f"{told} {new}", expression=new)
    return None


def _condition(root: ast.Expression, text: str) -> Fix | None:
    """What to write in place of an expression that is a value and no condition."""
    if _is_capacity(root):
        new = f'{text.strip()}.compareTo(quantity("40Gi")) >= 0'
        return Fix(f"Compare it with an amount: {new}", expression=new)
    is_text = isinstance(root, ast.Literal) and not isinstance(root.value, bool)
    if is_text or _made(root) or isinstance(root, ast.ListLiteral):
        return Fix('Write a condition on the device: device.driver == "…", or an attribute and == "…" behind it.')
    return None


def parsed(text: str) -> ast.Expression | None:
    """The tree of an expression; None if it is none."""
    from kubectl_dra.cel.environment import Environment
    from kubectl_dra.cel.lexer import ParseError
    from kubectl_dra.cel.parser import parse

    try:
        return parse(text, Environment.for_release().macros()).expression
    except (ParseError, RecursionError):
        return None


def spliced(path: FieldPath, text: str, edits: Iterable[tuple[int, int, str]]) -> Splice:
    """Several edits of one expression (each a range and its replacement) as one change."""
    ordered = sorted(edits)
    first, last = ordered[0][0], ordered[-1][1]
    out, done = [], first
    for start, end, put in ordered:
        out += [text[done:start], put]
        done = end
    return Splice(path, first, last, "".join(out))


_New = tuple[str, int, int, str]


def _ordered(node: ast.Expression, text: str) -> _New | None:
    """``<`` and the like between quantities or versions, which need compareTo."""
    if not isinstance(node, ast.Call) or node.function not in _ORDER:
        return None
    left, right = node.arguments
    operator = _ORDER[node.function]
    if (_made(left) and not _made(right)) or (_is_capacity(right) and constant(left) is not None):
        left, right, operator = right, left, _TURNED[operator]
    subject, how = text[left.start : left.end].strip(), "Compare by compareTo"
    if _made(right):
        other = text[right.start : right.end].strip()
    elif _is_capacity(left) and (value := constant(right)) is not None and value.type in ("int", "string", "double"):
        least = Published(size := _size(left, value))
        if operator in (">=", ">") and is_measured(_column(left)) and size != value.text:
            least = published(size)
        other = f'quantity("{least.amount}")'
        if size != value.text:
            how = f"Compare with {least.amount}{f': {least.why}' if least.why else ''}"
    else:
        return None
    return how, node.start, node.end, f"{subject}.compareTo({other}) {operator} 0"


def _as_quantity(node: ast.Expression, text: str) -> _New | None:
    """A capacity compared with a number or a text."""
    if not isinstance(node, ast.Call) or node.function not in ("_==_", "_!=_"):
        return None
    left, right = node.arguments
    value = constant(right)
    if not _is_capacity(left) or value is None or value.type not in ("int", "string", "double"):
        return None
    put = f'quantity("{_size(left, value)}")'
    return f"Compare with {put}", right.start, right.end, put


def _as_argument(node: ast.Expression, text: str) -> _New | None:
    """A text in a method that takes a version or a quantity."""
    if not isinstance(node, ast.Call) or node.function not in _METHODS or node.target is None or not node.arguments:
        return None
    argument, value, column = node.arguments[0], constant(node.arguments[0]), _column(node.target)
    if value is None or value.type != "string":
        return None
    known = catalogue().driver(column.domain or "")
    attribute = known.attributes.get(column.id or "") if known is not None else None
    if column.kind == "capacity":
        put = f'quantity("{value.text}")'
    elif column.kind == "attribute" and (
        attribute.type == "version" if attribute is not None else _VERSION.fullmatch(value.text)
    ):
        put = f'semver("{semver_text(value.text)}")'
    else:
        return None
    return f"Compare with {put}", argument.start, argument.end, put


def semver_text(text: str) -> str:
    """A version with its three numbers, as semver() wants it."""
    parts = [part.lstrip("0") or "0" for part in text.lstrip("v").split(".")]
    if any(whole_number(part, 20) is None for part in parts) or len(parts) > 3:
        return text
    return ".".join([*parts, "0", "0"][:3])


def _operators(path: FieldPath, text: str) -> Fix | None:
    """Operators of other languages, all at once: ``=`` for ``==``, ``and`` for ``&&``; None if more is wrong."""
    hidden = STRINGS.sub(lambda match: "_" * len(match.group()), text)
    edits = [(match.start(), match.end(), _in_cel(match.group().strip())) for match in _FOREIGN.finditer(hidden)]
    if not edits:
        return None
    if all(put == "==" for _, _, put in edits):
        return Fix.guess("Write == to compare", spliced(path, text, edits))
    if parsed(spliced(path, text, [(0, 0, ""), *edits, (len(text), len(text), "")]).text) is None:
        return None
    puts = dict.fromkeys(put for _, _, put in edits)
    return Fix.guess(f"Write {join(puts)}", spliced(path, text, edits))


def _in_cel(foreign: str) -> str:
    known = {"and": "&&", "or": "||", "not": "!", "&": "&&", "|": "||"}.get(foreign.lower())
    return known or ("==" if foreign.startswith("=") else '"')


def _made(node: ast.Expression) -> bool:
    """Whether it is a call of quantity(...) or semver(...)."""
    return isinstance(node, ast.Call) and node.target is None and node.function in ("quantity", "semver")


def _is_capacity(node: ast.Expression) -> bool:
    return _column(node).kind == "capacity"


def _column(node: ast.Expression) -> Column:
    return column_of(node, {}) or Column("", None, None)


def _size(capacity: ast.Expression, value: Constant) -> str:
    """A constant as the quantity that is meant."""
    return size_of(_column(capacity), value.value) if value.type == "int" else value.text


# Guesses which name was meant when an object refers to a missing part of itself.


def meant_name(raw: Mapping[str, Any], violation: Violation) -> Fix | None:
    """The fix for an unknown request in a constraint or config, or an unknown claim in a container."""
    path = tuple(str(part) if isinstance(part, str) else part for part in violation.path)
    if violation.rule == "container-claim-unknown":
        return _claim(raw, path)
    devices = next((value_at(raw, path[:end]) for end in range(len(path)) if path[end - 1 : end] == ("devices",)), None)
    name, beside = value_at(raw, path), value_at(raw, path[:-1])
    if not isinstance(name, str) or not isinstance(beside, list):
        return None
    requests = _requests(devices)
    if name in requests:
        # It is wrong in both places: nothing else is meant.
        return Fix("It is the name of a request: rename that, and change it wherever it is named.")
    return _fix(path, name, [known for known in requests if known not in beside])


def _claim(raw: Mapping[str, Any], path: FieldPath) -> Fix | None:
    name = value_at(raw, (*path, "name"))
    spec = value_at(raw, path[: path.index("spec") + 1])
    known = [str(claim.get("name")) for claim in items(spec, "resourceClaims") if claim.get("name")]
    if not isinstance(name, str) or not known or name in known:
        return None
    used = {used for _, used, _ in uses({"spec": spec})}
    free = [known_name for known_name in known if known_name not in used]
    missing = used - set(known)
    near = nearest(name, (*free, *known))
    beside = [claim.get("name") for claim in items(value_at(raw, path[:-2]), "claims")]
    if near and near[0] in beside:
        return Fix(f'Remove it if "{near[0]}" is meant, which the container has already.')
    if near:
        return Fix.guess(f'Write "{near[0]}"', Set((*path, "name"), near[0]))
    if len(free) == 1 and len(missing) == 1:
        change = (Set((*path, "name"), free[0]),)
        if len(known) == 1:
            return Fix.guess(f'Write "{free[0]}", the only claim of the pod', *change)
        # That it belongs to this container is for people to say.
        return Fix(f'Write "{free[0]}" if that is meant: it is the only claim that no container uses.', change)
    return None


def _fix(path: FieldPath, name: str, known: Iterable[str]) -> Fix | None:
    near = nearest(name, tuple(known))
    return Fix.guess(f'Write "{near[0]}"', Set(path, near[0])) if near else None


def _requests(devices: Any) -> list[str]:
    names = []
    for request in items(devices, "requests"):
        name = str(request.get("name") or "")
        names += [name, *(f"{name}/{sub.get('name')}" for sub in items(request, "firstAvailable"))]
    return names


# Claim fields that articles show but no API ever had, and their equivalents today.

_SELECTOR: Final = re.compile(r"([A-Za-z0-9.-]+)/([A-Za-z_]\w*)\s*=\s*(\S+)\Z")
_NOT_NAME: Final = re.compile(r"[^a-z0-9]+")
_MOST: Final = 700


def device_requests(value: Any) -> Fix | None:
    """The ``devices`` that correspond to ``spec.deviceRequests``; None if its shape is unreadable."""
    if not isinstance(value, list) or not value or not all(isinstance(request, dict) for request in value):
        return None
    requests = [_request(request, index) for index, request in enumerate(value)]
    devices = {"requests": requests}
    text = _flow(devices)
    return (
        Fix(f"Write devices: {text}", block=tuple(block("devices", devices, 0, Style())))
        if len(text) <= _MOST
        else None
    )


def _request(request: Mapping[str, Any], index: int) -> dict[str, Any]:
    name = _name(request.get("name"), f"request-{index}")
    alternatives = request.get("alternatives")
    if isinstance(alternatives, list) and alternatives:
        several = [alternative for alternative in alternatives if isinstance(alternative, Mapping)]
        # The order says what priority says; of equal ones the first stays first.
        several.sort(key=lambda alternative: -_number(alternative.get("priority")))
        return {"name": name, "firstAvailable": list(_alternatives(several, request))}
    return {"name": name, "exactly": _asked(request, {})}


def _alternatives(several: list[Mapping[str, Any]], above: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    names: set[str] = set()
    for index, alternative in enumerate(several):
        match = _SELECTOR.match(str(alternative.get("selector", "")))
        name = _name(alternative.get("name") or (match and match[3]), f"choice-{index}")
        name = name if name not in names else f"{name}-{index}"
        names.add(name)
        yield {"name": name, **_asked(alternative, above)}


def _asked(alternative: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Class, count and selector of one alternative; missing ones come from the enclosing level."""
    merged = {**above, **alternative}
    match = _SELECTOR.match(str(merged.get("selector", "")))
    given = merged.get("deviceClassName")
    out: dict[str, Any] = {"deviceClassName": given if isinstance(given, str) else match[1] if match else "CLASS"}
    if merged.get("allocationMode") == "All":
        out["allocationMode"] = "All"
    elif _number(merged.get("count")) > 1:
        out["count"] = merged["count"]
    if match is not None:
        out["selectors"] = [{"cel": {"expression": _expression(*match.groups())}}]
    return out


def _expression(domain: str, name: str, value: str) -> str:
    """The comparison of an attribute, with the name and operator that suit its driver."""
    driver = catalogue().driver(domain)
    if driver is not None:
        kind, _, other = driver.instead.get(name, "").partition(" ")
        name = other if kind == "attribute" and other.isidentifier() else name
    attribute = None if driver is None else driver.attributes.get(name)
    read = f'device.attributes["{domain}"].{name}'
    partial = driver is not None and attribute is not None and attribute.names == "products"
    if driver is not None and partial and value not in driver.products:
        meant = alike(value, driver.product_names)
        return f"{read}.contains({json.dumps((common_part(value, meant) if meant else '') or value)})"
    return f"{read} == {json.dumps(value)}"


def _name(value: Any, otherwise: str) -> str:
    text = _NOT_NAME.sub("-", str(value or "").lower()).strip("-")
    return text or otherwise


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(below) for below in value) + "]"
    if isinstance(value, str) and not re.fullmatch(r"[A-Za-z][\w./-]*", value):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
