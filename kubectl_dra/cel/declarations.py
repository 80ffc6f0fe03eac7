"""The types that make up the function table.

One table declares every function. The checker, the cost estimate, both evaluators and the generated reference
read it. ``kubectl_dra.cel.library.table()`` builds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kubectl_dra.cel.libraries import ALWAYS, LibraryVersion

if TYPE_CHECKING:
    from kubectl_dra.cel.cost_model import Actual, Estimate
    from kubectl_dra.cel.types import CelType


class Overload(Struct, eq=False):
    """One signature of a function.

    ``id`` is cel-go's overload id. ``parameters`` starts with the receiver if ``member`` is true.
    ``implementation`` takes the values in that order and returns a value or raises EvaluationError. It is
    None for what the evaluator does itself (logic, conditional, equality, index, ``in``); the function's
    ``implementation`` is None then, too.

    ``version`` says which releases have it. An overload that a release changed is declared twice, with one id.

    ``estimate`` and ``actual`` replace the generic cost rules for this overload.
    """

    id: str
    parameters: tuple[CelType, ...]
    result: CelType
    member: bool = False
    implementation: Callable[..., Any] | None = None
    version: LibraryVersion = ALWAYS
    estimate: Estimate | None = None
    actual: Actual | None = None
    non_strict: bool = False

    def __repr__(self) -> str:
        return f"Overload({self.id})"


class Function(Struct, eq=False):
    """A function or operator name with all its overloads, in cel-go's order of declaration.

    ``implementation``, if set, serves every overload (cel-go's singleton binding). It receives the values
    unchecked and must raise ``no such overload`` itself. ``documentation`` and ``examples`` feed the
    generated reference.
    """

    name: str
    overloads: tuple[Overload, ...]
    implementation: Callable[..., Any] | None = None
    documentation: str = ""
    examples: tuple[str, ...] = ()
    library: str = "standard"

    def __repr__(self) -> str:
        return f"Function({self.name})"
