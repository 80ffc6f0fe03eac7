"""Why a text cannot be read, in one sentence: where the error is, and what to do."""

from __future__ import annotations

import re
from typing import Final

from kubectl_dra.errors import FileError
from kubectl_dra.manifests import nodes
from kubectl_dra.manifests.source import Source
from kubectl_dra.manifests.values import Node, ValueProblem

# What only a template's author writes unquoted; workflow engines put other {{…}} into finished manifests.
_HELM: Final = re.compile(r"\{\{-?\s*(\.(Values|Release|Chart|Capabilities|Files|Template)\b|include\b|template\b)")
_TEMPLATE: Final = re.compile(r"\{\{|\{%")
_JSON: Final = re.compile(r'(?:---)?\s*(?P<object>\{\s*["}])')
_REFUSED: Final = re.compile(r"^(?:%|---[ \t]+[^ \t\r\n#])", re.MULTILINE)


class TemplateError(FileError):
    """The text is a template that must be rendered first."""


def is_template(source: Source, start: int, end: int) -> bool:
    """Whether a part of the text contains something like a template action."""
    return _TEMPLATE.search(source.text, start, end) is not None


def helm_action(source: Source, root: Node) -> TemplateError | None:
    """The error for a document that is valid YAML although it contains a Helm action outside of quotes."""
    for found in _HELM.finditer(source.text, root.start_mark.index, root.end_mark.index):
        if nodes.is_plain(root, found.start()):
            return template_error(source, source.place(found.start())[0])
    return None


def refused(source: Source, behind: int, start: int) -> FileError | None:
    """The error for text before ``start`` and after the previous document, which kubectl does not accept.

    Before it reads YAML, kubectl splits a stream at the lines that begin with ``---``
    (k8s.io/apimachinery/pkg/util/yaml).
    """
    found = _REFUSED.search(source.text, behind, start + 1)
    if found is None:
        return None
    line, column = source.place(found.start())
    if found[0] == "%":
        return FileError("kubectl does not read YAML directives; remove the line", source.name, line, column)
    words = "kubectl accepts only a comment after ---; begin the document on the next line"
    return FileError(words, source.name, line, column)


def template_error(source: Source, line: int) -> TemplateError:
    """The error for a template, at a line."""
    problem = "this is a template; render it first, for example: helm template CHART > rendered.yaml"
    return TemplateError(problem, source.name, line)


def _template_at(source: Source, span: tuple[int, int]) -> TemplateError | None:
    """The error to give if a syntax error in the span most likely means that the text is a template."""
    found = _TEMPLATE.search(source.text, *span) or _HELM.search(source.text)
    return None if found is None else template_error(source, source.place(found.start())[0])


def value_error(source: Source, problem: ValueProblem, root: Node) -> FileError:
    """The error for a value or key that Kubernetes' JSON cannot hold."""
    node = problem.node
    if type(node.value) is not str:
        template = _template_at(source, (root.start_mark.index, root.end_mark.index))
        if template is not None:
            return template
    line, column = source.place(node.start_mark.index)
    return FileError(str(problem), source.name, line, column)


def too_deep(source: Source) -> FileError:
    """The error for a text that is nested too deeply."""
    return FileError(f"nested more than {nodes.DEEPEST} levels deep", source.name)


def syntax_error(source: Source, error: Exception, base: int, span: tuple[int, int]) -> FileError:
    """The error for a syntax error in a document with that span. The parser's offsets count from ``base``."""
    template = _template_at(source, span)
    if template is not None:
        return template
    if (broken := _json_error(source, span)) is not None:
        return broken
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    offset = getattr(error, "position", None) if mark is None else mark.index
    if not isinstance(offset, int):
        return FileError(f"not valid YAML: {problem}", source.name)
    offset = min(base + offset, len(source.text))
    line, column = source.place(offset)
    if mark is not None and source.text[offset : offset + 1] == "\t":
        problem = "a tab cannot indent here; use spaces"
    context = getattr(error, "context", None)
    if context and "\t" not in str(problem) and not str(problem).startswith("a tab"):
        problem = f"{problem} ({context})"
    return FileError(f"not valid YAML: {problem}{_cut_off(source, offset)}", source.name, line, column)


def _json_error(source: Source, span: tuple[int, int]) -> FileError | None:
    """The error for what was meant to be JSON: it begins like that, and its name does not say YAML."""
    if source.name.lower().endswith((".yaml", ".yml")) or not (found := _JSON.match(source.text, span[0])):
        return None
    from json import JSONDecodeError, JSONDecoder

    try:
        JSONDecoder().raw_decode(source.text, found.start("object"))
    except JSONDecodeError as error:
        # A string that does not end is told by where it begins.
        open_string = error.msg.startswith("Unterminated string")
        words = "a string does not end" if open_string else error.msg[:1].lower() + error.msg[1:]
        ends = _cut_off(source, len(source.text) if open_string else error.pos)
        line, column = source.place(min(error.pos, len(source.text)))
        return FileError(f"not valid JSON: {words}{ends}", source.name, line, column)
    except RecursionError:
        return None
    return None


def _cut_off(source: Source, offset: int) -> str:
    """What to add where nothing comes behind a mistake."""
    return "" if source.text[offset:].strip() else "; the text ends here and may be truncated"
