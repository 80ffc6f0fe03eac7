"""Runs the case files with noise in place of every text: ``python -m tests.explain.noise`` prints what came of each.

Texts of causes, reasons, phrases, evidence, remedies and errors become noise, each another one. What Kubernetes wrote
into events and conditions stays: there words are all that tells.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from msgspec import StructMeta
from msgspec.structs import force_setattr

from kubectl_dra.explain import phrase


def noise(text: object) -> Any:
    """Another text for a text, the same one each time; anything else as it is."""
    return f"{crc32(text.encode()):08x}" if isinstance(text, str) and text else text


def garble(kind: type, *names: str) -> None:
    """Makes instances of a class have noise in these fields, which are also its first positional arguments."""
    made: Callable[..., None] = kind.__init__  # type: ignore[misc]

    @wraps(made)
    def garbled(self: object, *values: object, **named: object) -> None:
        first, rest = _noisy(names, values, named)
        made(self, *first, **rest)

    kind.__init__ = garbled  # type: ignore[misc]
    assert not hasattr(kind, "__struct_fields__"), f"{kind.__name__} never calls __init__: use garble_struct"


def garble_struct(home: ModuleType, name: str, *names: str) -> None:
    """Puts a struct with noise in these fields, which come first, in the place of one of a module, wherever it is."""

    class Garbling(StructMeta):
        def __call__(cls, *values: object, **named: object) -> object:
            first, rest = _noisy(names, values, named)
            return super().__call__(*first, **rest)

    kind = getattr(home, name)
    garbling = Garbling(name, (kind,), {"__module__": home.__name__}, frozen=True)
    users = [module for key, module in sys.modules.items() if key.startswith("kubectl_dra")]
    for module in users:
        if vars(module).get(name) is kind:
            setattr(module, name, garbling)


def _noisy(
    names: Sequence[str], values: Sequence[object], named: Mapping[str, object]
) -> tuple[list[object], dict[str, object]]:
    first = [noise(value) if index < len(names) else value for index, value in enumerate(values)]
    return first, {name: noise(value) if name in names else value for name, value in named.items()}


def garble_everything() -> None:
    """Garbles all texts; before any module that has some is imported."""
    garble_struct(phrase, "Phrase", "template")
    made = phrase.Statement.__init_subclass__

    def subclassed(cls: type[phrase.Statement]) -> None:
        made()
        if "TEXT" in cls.__dict__:
            cls.TEXT = noise(cls.TEXT)

    phrase.Statement.__init_subclass__ = classmethod(subclassed)  # type: ignore[assignment]

    from kubectl_dra.allocation.errors import AllocationError, NodeRejected
    from kubectl_dra.api.labels import InvalidNodeSelector
    from kubectl_dra.cel import errors
    from kubectl_dra.cel.errors import CompileError, EvaluationError
    from kubectl_dra.data import code_pages
    from kubectl_dra.explain import diagnosis

    garble(AllocationError, "message")
    garble(NodeRejected, "message")
    garble(InvalidNodeSelector, "message")
    garble(EvaluationError, "message")
    garble_struct(errors, "Issue", "message")
    garble(CompileError, "issues", "text")
    garble_struct(diagnosis, "Evidence", "object", "field", "value")
    garble_struct(diagnosis, "Remedy", "change")

    from kubectl_dra.scheduling import chain as chain
    from kubectl_dra.scheduling.reasons import Reason

    for reason in Reason.__subclasses__():
        reason.SAID = noise(reason.SAID)

    from kubectl_dra.explain.causes.registry import all_kinds

    for kind in all_kinds():
        force_setattr(kind, "state", noise(kind.state))
    read = code_pages.page

    def garbled(folder: str, code: str) -> code_pages.CodePage:
        page = read(folder, code)
        sections = {name: noise(body) for name, body in page.sections.items()}
        return page._replace(title=noise(page.title), head=tuple(map(noise, page.head)), sections=sections)

    code_pages.page = garbled  # type: ignore[assignment]


def main() -> None:
    garble_everything()
    from tools.cases import QUICK_CASES, run_case

    out = []
    with tempfile.TemporaryDirectory() as folder:
        for case in QUICK_CASES:
            code, output = run_case(case, Path(folder), "json")
            found = json.loads(output)
            codes = [cause["code"] for cause in found["causes"]]
            out.append([case.file, case.name, code, found["verdict"], codes, found["answer"]])
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
