"""``explain --cause CODE``: the page of a cause."""

from __future__ import annotations

import sys

from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.errors import UsageError
from kubectl_dra.explain.causes.registry import all_kinds
from kubectl_dra.report.cause_page import cause_json
from kubectl_dra.report.page_text import write_page
from kubectl_dra.report.structured import write
from kubectl_dra.text import nearest, page_of_causes


def print_page(asked: ExplainFlags) -> int:
    """Print the page; return the exit code.

    Raises:
        UsageError: no such cause, or what does not go with it.
    """
    if asked.target or asked.manifests or asked.all_claims or asked.all_namespaces:
        raise UsageError("--cause prints a page about one cause; leave the pod, claim or manifest out")
    if asked.output is ExplainOutput.html:
        raise UsageError("--cause prints text, json or yaml, not html")
    known = {kind.code: kind for kind in all_kinds()}
    kind = known.get(asked.cause.lower())
    if kind is None:
        near = nearest(asked.cause, known)
        hint = f"; nearest: {', '.join(near)}" if near else f"; {page_of_causes()} lists them"
        raise UsageError(f'there is no cause "{asked.cause}"{hint}')
    if asked.output is ExplainOutput.text:
        write_page(kind.page.text)
    else:
        write(cause_json(kind), asked.output.value, sys.stdout)
    return 0
