"""HTML from untrusted text: everything not made here is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from kubectl_dra.console import visible

_VOID = frozenset(("br", "input", "link", "meta"))


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def text(value: str) -> Markup:
    r"""Text as HTML that shows it literally; invisible characters are written as ``\u202e``."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(visible(value), quote=True))


def tag(name: str, /, *children: str, **attributes: str | int | bool | None) -> Markup:
    """An element. Children are escaped unless they are Markup.

    An attribute ``data_node`` is written ``data-node``, ``class_`` as ``class``. True is written without a
    value; False and None are left out.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{''.join(map(text, children))}</{name}>")


def join(parts: Iterable[str], between: str = "") -> Markup:
    """Parts in sequence, each escaped unless it is Markup."""
    return Markup(text(between).join(map(text, parts)))


def code(value: str) -> Markup:
    """A name, an expression or a command."""
    return tag("code", value)


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'
