"""Which devices a selector is evaluated on, given its request's class, earlier selectors and known drivers, and what
becomes of it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.cel.columns import Column
from kubectl_dra.cel.errors import CompileError
from kubectl_dra.data.drivers import Driver, Kind, catalogue
from kubectl_dra.lint.analysis.cel_terms import ConstantComparison, contradiction, demands
from kubectl_dra.lint.analysis.possible_results import PossibleResults, Shape, outcome
from kubectl_dra.lint.analysis.published_devices import known_driver, known_kinds
from kubectl_dra.lint.context import (
    AssumedCluster,
    Context,
    Item,
    WrittenSelector,
    compile_selector,
    compiled_selectors,
    once,
    selector_texts,
)
from kubectl_dra.manifests.changes import value_at

if TYPE_CHECKING:
    from kubectl_dra.cel.program import Program

SELECTOR_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
_NO_DRIVER: Final = "another.driver.invalid"


class OtherDriver(Struct, frozen=True):
    """A device of a driver that the expression does not expect."""

    driver: str = _NO_DRIVER

    def values(self, column: Column) -> tuple[Any, ...] | None:
        """Empty: it has nothing in the domains in question."""
        return ()


class Lacking(Struct, frozen=True):
    """A device of any driver that lacks exactly one attribute or capacity."""

    column: Column
    driver: str | None = None

    def values(self, column: Column) -> tuple[Any, ...] | None:
        """Empty for the missing one, unknown for all others."""
        return () if column == self.column else None


class AskedSelector(Struct, frozen=True):
    """A selector, and what is known about the devices on which it is evaluated.

    ``kinds`` are the possible kinds of devices of known drivers; ``sure`` means that there are no others.
    ``before`` are the earlier selectors of the list, which were true. ``device_class`` is empty for a class's
    own selectors.
    """

    selector: WrittenSelector
    program: Program
    device_class: str
    kinds: tuple[Kind, ...]
    sure: bool
    before: tuple[Program, ...]

    @property
    def path(self) -> FieldPath:
        """Where its text stands."""
        return self.selector.path

    @property
    def of_class(self) -> bool:
        """Whether it is a DeviceClass's selector, which is evaluated on every device of the cluster."""
        return not self.device_class

    def reaches(self, shape: Any) -> bool:
        """Whether the earlier selectors can all be true on the shape."""
        return all(outcome(program.ast.expression, shape)[0].can_be(True) for program in self.before)


@once
def asked(context: Context) -> tuple[AskedSelector, ...]:
    """The selectors of an object that compile."""
    return tuple(_asked(context))


def _asked(context: Context) -> Iterator[AskedSelector]:
    before: list[Program] = []
    last: FieldPath = ()
    for selector in selectors(context):
        # .../selectors/N/cel/expression
        if len(selector.path) < 4 or selector.path[-4] != "selectors":
            continue
        holder = selector.path[:-4]
        if holder != last:
            before, last = [], holder
        if selector.program is None:
            continue
        name = class_of(context, selector.path)
        if name or context.item.kind == "DeviceClass":
            kinds, sure = _kinds(context, name, selector.program)
            yield AskedSelector(selector, selector.program, name, kinds, sure, tuple(before))
        before.append(selector.program)


def class_of(context: Context, path: FieldPath) -> str:
    """The class that a request names whose selector is at the path; empty for a selector of a class."""
    if context.item.kind == "DeviceClass":
        return ""
    return str(value_at(context.v1 or context.raw, (*path[:-4], "deviceClassName")) or "")


def selectors(context: Context) -> Sequence[WrittenSelector]:
    """The selectors, even of objects that have a field of a wrong type elsewhere."""
    if context.item.v1 is not None or not context.item.is_dra:
        return context.selectors
    return tuple(compiled_selectors(selector_texts(context.raw, context.spec_path), context.target))


@lru_cache(1024)
def columns(program: Program) -> tuple[Column, ...]:
    """The attributes and capacities that the expression names, sorted; empty if unknown."""
    read = program.columns or ()
    return tuple(
        sorted(column for column in read if column.kind in ("attribute", "capacity") and column.domain and column.id)
    )


def class_programs(context: Context, name: str) -> tuple[Program, ...] | None:
    """The compiled selectors of a class from the manifests or the snapshot.

    None if there is none, or if one in the manifests does not compile: which devices are meant is not known then.
    """
    given = context.nearest("DeviceClass", name)
    if given:
        return _programs_of(given[0], context.target)
    if context.snapshot is not None and name in context.snapshot.classes:
        return _compiled((text for text in context.snapshot.classes[name].selectors if text), context.target)
    return None


def installed_programs(context: Context, name: str) -> tuple[Program, ...]:
    """The compiled selector of a class as its driver installs it; none if no known driver has the class."""
    driver = catalogue().of_class(name)
    selector = driver.classes[name].selector if driver is not None else ""
    return _compiled((selector,) if selector else (), context.target)


def class_names(context: Context) -> tuple[str, ...]:
    """The classes that a request can ask for: those of the cluster and the manifests, or of the known drivers."""
    given = context.given.names("DeviceClass")
    others = catalogue().classes if context.snapshot is None else context.snapshot.classes
    return tuple(dict.fromkeys((*given, *others)))


@lru_cache(1024)
def _programs_of(device_class: Item, target: AssumedCluster) -> tuple[Program, ...] | None:
    texts = [text for _, text in selector_texts(device_class.v1 or device_class.raw, ("spec",))]
    programs = _compiled(texts, target)
    return programs if len(programs) == len(texts) else None


def _compiled(expressions: Iterable[str], target: AssumedCluster) -> tuple[Program, ...]:
    """The programs of those that compile."""
    results = [compile_selector(text, target) for text in expressions]
    return tuple(program for program in results if not isinstance(program, CompileError))


def drivers_of(context: Context, name: str) -> tuple[Driver, ...]:
    """The known drivers whose devices a class can admit; none without a name."""
    programs = class_programs(context, name) if name else None
    if programs is not None:
        kinds = _admitted(programs)
        drivers = (known_driver(context, name) for name in sorted({kind.driver for kind in kinds}))
        return tuple(driver for driver in drivers if driver is not None)
    own = catalogue().of_class(name)
    driver = known_driver(context, own.name) if own is not None else None
    return () if driver is None else (driver,)


def _kinds(context: Context, name: str, program: Program) -> tuple[tuple[Kind, ...], bool]:
    known = kinds_of_class(context, name) if name else None
    return (known_kinds(context, _kinds_read(program)), False) if known is None else (known, bool(known))


def kinds_of_class(context: Context, name: str) -> tuple[Kind, ...] | None:
    """The kinds of devices of known drivers that a class admits; None if nothing is known of it."""
    own = catalogue().of_class(name)
    if own is not None:
        return known_kinds(context, own.kinds_of(name))
    programs = class_programs(context, name)
    return None if programs is None else known_kinds(context, _admitted(programs))


@lru_cache(1024)
def _admitted(programs: tuple[Program, ...]) -> tuple[Kind, ...]:
    """The kinds of known drivers that a class's selectors can admit, if they name a driver at all."""
    if not programs or all(outcome(program.ast.expression, OtherDriver())[0].can_be(True) for program in programs):
        return ()
    texts = " ".join(program.ast.source for program in programs)
    named = [name for name in catalogue().names if name in texts]
    drivers = filter(None, map(catalogue().driver, named or catalogue().names))
    shapes = (Perhaps(driver, kind) for driver in drivers for kind in driver.kinds)
    trees = [program.ast.expression for program in programs]
    return tuple(shape.kind for shape in shapes if all(outcome(tree, shape)[0].can_be(True) for tree in trees))


@lru_cache(1024)
def _kinds_read(program: Program) -> tuple[Kind, ...]:
    """The kinds of the drivers whose attributes or capacities an expression reads."""
    domains = sorted({column.domain for column in program.columns or () if column.domain})
    return tuple(kind for driver in filter(None, map(catalogue().driver, domains)) for kind in driver.kinds)


class Perhaps(Struct, frozen=True):
    """A kind of device with everything that any of its devices may have."""

    known: Driver
    kind: Kind

    @property
    def driver(self) -> str:
        """The kind's driver."""
        return self.kind.driver

    def values(self, column: Column) -> tuple[Any, ...] | None:
        """Empty only if no device of the kind has it."""
        values = self.kind.values(column)
        if values == () and (self.kind.publishes(column) or not self.known.complete):
            return None
        return values


def read_text(column: Column) -> str:
    """The CEL text that reads a column."""
    table = "capacity" if column.kind == "capacity" else "attributes"
    return f'device.{table}["{column.domain}"].{column.id}'


# What becomes of a selector that names what no device has: an error, or nothing where the read is guarded.

NEVER_READ: Final = "; it is read only where a device has it, which none does"
NOT_NEEDED: Final = "; the rest of the expression decides without it: this term says nothing"


def without_harm(target: AskedSelector, column: Column) -> str:
    """Why an expression never ends in an error though no device has the column, as a clause; empty if it does."""
    lacking = Lacking(column, column.domain)
    if _fails(target, lacking, column) and not (
        target.sure and not any(_fails(target, kind, column) for kind in target.kinds)
    ):
        return ""
    _, failed = outcome(target.program.ast.expression, lacking)
    return NOT_NEEDED if any(read.column == column for read in failed) else NEVER_READ


def harmless(target: AskedSelector, column: Column) -> str:
    """The same clause if the selector matches devices without the column besides; empty otherwise."""
    shapes: tuple[Shape, ...] = target.kinds if target.sure else (Lacking(column, column.domain),)
    return without_harm(target, column) if _matches(target, {}, shapes) else ""


def matches_where(target: AskedSelector, known: Mapping[int, PossibleResults]) -> bool:
    """Whether the selector can match, and never ends in an error, where parts of it have these results, by their id."""
    shapes: tuple[Shape, ...] = target.kinds if target.sure else (_AnyDevice(),)
    fails = any(result.error for result in known.values())
    if fails and any(outcome(target.program.ast.expression, shape, known)[0].error for shape in shapes):
        return False
    return _matches(target, known, shapes)


class _AnyDevice:
    """A device of which nothing is known."""

    driver: str | None = None

    def values(self, column: Column) -> None:
        """Unknown."""


def _matches(target: AskedSelector, known: Mapping[int, PossibleResults], shapes: tuple[Shape, ...]) -> bool:
    return any(outcome(target.program.ast.expression, shape, known)[0].can_be(True) for shape in shapes)


def _fails(target: AskedSelector, shape: Shape, column: Column) -> bool:
    """Whether the expression can end in an error on such a device because it reads the column."""
    results, failed = outcome(target.program.ast.expression, shape)
    return results.error and any(read.column == column for read in failed)


# Terms of a selector that exclude what its class or another term asks for, and the classes that do not.


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
