"""What the function table is made of.

One table declares every function once; the checker, the cost estimate, both evaluators and the
generated reference read it. ``kubectl_dra.cel.library.table()`` builds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubectl_dra.cel.cost_model import Actual, Estimate
    from kubectl_dra.cel.types import CelType

ALWAYS = "1.0"


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    ``id`` is cel-go's overload id. ``parameters`` has the receiver first when ``member`` is true.
    ``implementation`` takes the values in that order and returns a value or raises EvaluationError;
    it is None for what the evaluator does itself (logic, conditional, comparison for equality,
    index, ``in``), and then the function's ``implementation`` is None too.

    New expressions may use the overload from release ``since`` on, and before release ``removed``;
    stored expressions from ``stored_since`` on. With ``feature`` it additionally (in new
    expressions) needs that feature gate.

    ``estimate`` and ``actual`` replace the generic cost rules for this overload.
    """

    id: str
    parameters: tuple[CelType, ...]
    result: CelType
    member: bool = False
    implementation: Callable[..., Any] | None = None
    since: str = ALWAYS
    stored_since: str = ALWAYS
    feature: str | None = None
    estimate: Estimate | None = None
    actual: Actual | None = None
    non_strict: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function or operator name with all its overloads, in cel-go's declaration order.

    ``implementation``, when set, serves every overload (cel-go's singleton binding): it gets the
    values as they are and must raise ``no such overload`` itself when it cannot handle them.
    ``documentation`` and ``examples`` feed the generated reference.
    """

    name: str
    overloads: tuple[Overload, ...]
    implementation: Callable[..., Any] | None = None
    documentation: str = ""
    examples: tuple[str, ...] = ()
    library: str = "standard"


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro as the reference lists it; the expansion is in ``kubectl_dra.cel.macros``.

    ``argument_count`` excludes the receiver.
    """

    name: str
    member: bool
    argument_count: int
    since: str = ALWAYS
    stored_since: str = ALWAYS
    documentation: str = ""
    examples: tuple[str, ...] = ()
    library: str = "standard"
    expander: Callable[..., Any] | None = field(default=None, compare=False)
