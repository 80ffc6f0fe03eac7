"""What an expression may use, depending on the release, the feature gates, and whether it is new or stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kubectl_dra.api.releases import UNTOLD, Release, default_features, parse_release
from kubectl_dra.cel import protobuf, types
from kubectl_dra.cel.functions import Function, Overload
from kubectl_dra.cel.libraries import ESCAPED_FIELDS, LIST_ATTRIBUTES, LISTS_BY_GATE, LISTS_STORED, SHARING
from kubectl_dra.cel.types import CelType, map_of, type_of_type

if TYPE_CHECKING:
    from kubectl_dra.cel.macros import Expander, MacroKey

CONSUMABLE_CAPACITY = "DRAConsumableCapacity"

_NAMED = (
    *(types.BOOL, types.BYTES, types.CIDR, types.DOUBLE, types.DURATION, types.INT, types.IP, types.LIST, types.MAP),
    *(types.NULL, types.OPTIONAL, types.STRING, types.TIMESTAMP, types.TYPE, types.UINT),
)
_TYPE_NAMES: dict[str, CelType] = {named.name: named for named in _NAMED}

_WITHOUT_FIELDS = frozenset({"bool", "bytes", "double", "int", "list", "string", "uint"})
"""Types that Kubernetes declares like structs although they have no fields."""


class Environment:
    """Compiles expressions as one Kubernetes release does.

    Kubernetes has two environments, chosen by ``stored``. New expressions (in created or changed objects) may
    use only what the previous release also knew, and need feature gates. Stored ones (in the scheduler and
    unchanged objects) may use everything that the release has.
    """

    def __init__(self, release: Release, features: frozenset[str], stored: bool) -> None:
        self.release = release
        self.features = features
        self.stored = stored
        gated = LIST_ATTRIBUTES in features and release in LISTS_BY_GATE
        self.list_attributes = gated or (stored and release in LISTS_STORED)
        self.escapes_fields = release in ESCAPED_FIELDS
        self._functions: dict[str, Function | None] = {}
        self._macros: dict[MacroKey, Expander] | None = None
        value_type = types.DYN if self.list_attributes else types.ANY
        self._fields = {
            "driver": types.STRING,
            "attributes": map_of(types.STRING, map_of(types.STRING, value_type)),
            "capacity": map_of(types.STRING, map_of(types.STRING, types.QUANTITY)),
        }
        gated = CONSUMABLE_CAPACITY in features
        if (stored or gated) and release in SHARING:
            self._fields["allowMultipleAllocations"] = types.BOOL

    @staticmethod
    def for_release(
        release: Release | str = UNTOLD, features: Iterable[str] | None = None, stored: bool = False
    ) -> Environment:
        """The environment of a release, given as a value or a text such as "1.36". Equal arguments give the
        same object.

        ``features`` are the enabled feature gates; None means the release's defaults. Raises ValueError for
        an invalid release.
        """
        known = parse_release(release) if isinstance(release, str) else release
        if known.major != 1:
            raise ValueError(f"not a Kubernetes release that is known: {known}")
        gates = default_features(known) if features is None else frozenset(features)
        key = (known.without_patch, gates & {CONSUMABLE_CAPACITY, LIST_ATTRIBUTES}, stored)
        environment = _CACHE.get(key)
        if environment is None:
            environment = _CACHE[key] = Environment(*key)
        return environment

    # --- what the checker and the evaluators ask --------------------------------------------------

    def converts_lists(self) -> bool:
        """Whether the scheduler of this release accepts devices with list attributes."""
        return self.list_attributes or self.release in LISTS_STORED

    def function(self, name: str) -> Function | None:
        """A function reduced to the overloads that are usable here, or None."""
        if name in self._functions:
            return self._functions[name]
        from kubectl_dra.cel.library import table

        declared = table().get(name)
        usable = None
        if declared is not None:
            overloads = tuple([overload for overload in declared.overloads if self._offers(overload)])
            if len(overloads) == len(declared.overloads):
                usable = declared
            elif overloads:
                usable = Function(declared.name, overloads, declared.implementation, declared.library)
        self._functions[name] = usable
        return usable

    def _offers(self, overload: Overload) -> bool:
        return overload.version.offered(self.release, self.features, stored=self.stored)

    def overloads(self, function: str) -> Sequence[Overload] | None:
        """The usable overloads of a function, or None if there is no such function."""
        declared = self.function(function)
        return None if declared is None else declared.overloads

    def variable(self, name: str) -> CelType | None:
        """The type of a variable or type name, or None."""
        if name == "device":
            return types.DEVICE
        named = _TYPE_NAMES.get(name)
        if named is not None:
            return type_of_type(named)
        message = types.DEVICE if name == types.DEVICE.name else protobuf.MESSAGES.get(name)
        if message is not None:
            return type_of_type(message)
        return types.INT if name == protobuf.NULL_VALUE else None

    def fields(self, struct: str) -> Mapping[str, CelType] | None:
        """The types of a struct's or message's fields, or None if its fields are unknown."""
        if struct == types.DEVICE.name:
            return self._fields
        return {} if struct in _WITHOUT_FIELDS else protobuf.FIELDS.get(struct)

    def suggestion(self, name: str, member: bool) -> str:
        """The known name closest to an unknown function, variable or (``struct.field``) field; empty if none is."""
        from difflib import get_close_matches

        from kubectl_dra.cel.library import table

        struct, dot, field = name.rpartition(".")
        if dot and struct == types.DEVICE.name:
            near = get_close_matches(field, self._fields, 1)
            return near[0] if near else ""
        known = [
            function
            for function in table()
            if function[0].isalpha()
            and (declared := self.function(function)) is not None
            and any(overload.member == member for overload in declared.overloads)
        ]
        if not member:
            known.append("device")
        near = get_close_matches(name, known, 1, 0.7)
        return near[0] if near else ""

    def macros(self) -> dict[MacroKey, Expander]:
        """The macros usable here, by name, number of arguments, and whether they are called on a value."""
        if self._macros is None:
            from kubectl_dra.cel.macros import macros_for

            self._macros = macros_for(self.release, self.stored)
        return self._macros


_CACHE: dict[tuple[Release, frozenset[str], bool], Environment] = {}
