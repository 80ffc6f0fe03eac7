"""Terms of a selector that exclude what its class or another term asks for, and the classes that do not."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from kubectl_dra.lint.analysis.cel_terms import ConstantComparison, contradiction, demands
from kubectl_dra.lint.analysis.selector_targets import AskedSelector, class_names, class_programs, installed_programs
from kubectl_dra.lint.context import Context


class Whose(Enum):
    """Where the other of two terms stands."""

    CLASS = "the class"
    INSTALLED_CLASS = "the class, as its driver installs it"
    SELECTOR = "another selector of the list"
    TERM = "the same selector"


class ExcludedTerm(Struct, frozen=True):
    """A term that can never be true together with an ``other``."""

    term: ConstantComparison
    other: ConstantComparison
    whose: Whose


def clash(context: Context, target: AskedSelector) -> ExcludedTerm | None:
    """The first term of a selector that another one excludes."""
    earlier = [*_of_class(context, target)]
    earlier += [(demand, Whose.SELECTOR) for program in target.before for demand in demands(program)]
    own: list[ConstantComparison] = []
    for demand in demands(target.program):
        rivals = [*earlier, *((other, Whose.TERM) for other in own)]
        found = next(((other, whose) for other, whose in rivals if contradiction(other, demand)), None)
        if found is not None:
            return ExcludedTerm(demand, *found)
        own.append(demand)
    return None


def _of_class(context: Context, target: AskedSelector) -> Iterator[tuple[ConstantComparison, Whose]]:
    if not target.device_class:
        return
    given = class_programs(context, target.device_class)
    # A class of a vendor's name that is in no file is most likely the vendor's.
    programs = installed_programs(context, target.device_class) if given is None else given
    for program in programs:
        for demand in demands(program):
            yield demand, Whose.INSTALLED_CLASS if given is None else Whose.CLASS


def classes_for(context: Context, term: ConstantComparison) -> tuple[str, ...]:
    """The classes that ask for what a term asks for, too."""
    names = []
    for name in class_names(context):
        given = class_programs(context, name)
        wanted = [
            demand
            for program in (installed_programs(context, name) if given is None else given)
            for demand in demands(program)
            if demand.column == term.column
        ]
        if wanted and not any(contradiction(demand, term) for demand in wanted):
            names.append(name)
    return tuple(names)
