"""A selector that somebody typed: compiled when it is read, so that the error is about what was typed."""

from __future__ import annotations

from kubectl_dra.cel import CompileError, Environment, Program, compile_expression
from kubectl_dra.errors import UsageError


def compiled_selector(expression: str, environment: Environment, typed: str = "--selector") -> Program:
    """The program of a selector; ``typed`` is where it was. Raises UsageError, with the place, where it is wrong."""
    try:
        return compile_expression(environment, expression)
    except CompileError as error:
        message = f"{typed} does not compile"
        lines: list[str] = []
        for issue in error.issues[:3]:
            said = issue.said
            if lines:
                lines.append(said)
            else:
                message += f": {said}"
            if issue.line:
                text = expression.splitlines()[issue.line - 1] if issue.line <= len(expression.splitlines()) else ""
                lines += [f"  {text}", f"  {' ' * (issue.column - 1)}^"]
        raise UsageError(message, lines) from None
