"""Replaces names in the parts that several kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubectl_dra.cluster.identities import Identities

Json = dict[str, Any]
Changes = dict[str, Callable[[Any], Any]]

LEFT_OUT: Final = "left-out"


class Parts:
    """Replaces names in fields, taints, node selectors and conditions."""

    def __init__(self, new: Identities) -> None:
        self._new = new

    def _unknown(self, value: Any) -> Any:
        """An unknown value, reduced to its type, which may matter."""
        if isinstance(value, str):
            return LEFT_OUT
        if isinstance(value, Mapping):
            return {}
        return [self._unknown(entry) for entry in value] if isinstance(value, list) else value

    def _fields(self, raw: Mapping[str, Any], changes: Mapping[str, Callable[[Any], Any]], kept: Iterable[str]) -> Json:
        """The object with some fields changed and some kept. Of the others only their presence remains."""
        kept = frozenset(kept)
        out: Json = {}
        for key, value in raw.items():
            if key in changes:
                out[key] = None if value is None else changes[key](value)
            elif key in kept:
                out[key] = value
            else:
                out[self._new.identifier(key)] = self._unknown(value)
        return out

    def _named(self, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """For a map by the names of capacities or counters."""
        return lambda entries: {self._new.qualified(name): change(entry) for name, entry in entries.items()}

    def _kept(self, value: Any) -> Any:
        return value

    def _each(self, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda entries: [change(entry) for entry in entries]

    def _taint(self, raw: Mapping[str, Any]) -> Json:
        """A taint or a toleration."""
        key = raw.get("key") or ""
        changes: Changes = {
            "key": lambda text: self._new.key(text) if text else text,
            "value": lambda value: self._new.value(key, value),
        }
        return self._fields(raw, changes, ("effect", "operator", "timeAdded", "tolerationSeconds"))

    def _condition(self, raw: Mapping[str, Any]) -> Json:
        changes: Changes = {
            "type": lambda name: self._new.plain("condition", name),
            "reason": lambda name: self._new.plain("reason", name),
            "message": self._new.names.text,
        }
        return self._fields(raw, changes, ("status", "lastTransitionTime", "observedGeneration"))

    def _node_selector(self, raw: Mapping[str, Any]) -> Json:
        terms = raw.get("nodeSelectorTerms") or ()
        return {"nodeSelectorTerms": [self._term(term) for term in terms]}

    def _term(self, raw: Mapping[str, Any]) -> Json:
        out: Json = {}
        if raw.get("matchExpressions"):
            out["matchExpressions"] = [self._requirement(entry) for entry in raw["matchExpressions"]]
        if raw.get("matchFields"):
            out["matchFields"] = [
                {
                    "key": entry.get("key") or "",
                    "operator": entry.get("operator") or "",
                    "values": [self._new.names.of("node", name) for name in entry.get("values") or ()],
                }
                for entry in raw["matchFields"]
            ]
        return out

    def _requirement(self, raw: Mapping[str, Any]) -> Json:
        key, operator = raw.get("key") or "", raw.get("operator") or ""
        out: Json = {"key": self._new.key(key), "operator": operator}
        if raw.get("values"):
            values = raw["values"]
            out["values"] = values if operator in ("Gt", "Lt") else [self._new.value(key, value) for value in values]
        return out
