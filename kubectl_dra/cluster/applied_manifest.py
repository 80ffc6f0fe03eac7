"""Lays a manifest over a snapshot: the state after applying it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from kubectl_dra.cluster.apply import SOME_SERVER, Server, apply
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS
from kubectl_dra.cluster.snapshot import ABSENT, Key, RefusedChange, Snapshot, WrittenKey, stand_in

K = TypeVar("K", str, Key)


def overlay(base: Snapshot, manifest: Snapshot, server: Server = SOME_SERVER) -> Snapshot:
    """The snapshot after the objects of a manifest were applied; see ``apply`` for those that exist already.

    A pod that stands for those of a workload is left out where a pod of that name exists.

    What was not read of the cluster remains a gap: a manifest says nothing of what else there is.
    """
    on = _Applying(manifest.written, server, base.created)
    others = {
        kind: on.applied(kind, base.others.get(kind, {}), manifest.others.get(kind, {}))
        for kind in {**base.others, **manifest.others}
    }
    pods = {key: pod for key, pod in manifest.pods.items() if key not in base.pods or stand_in(pod) is None}
    slices, new = ({slice_.name: slice_ for slice_ in snapshot.slices} for snapshot in (base, manifest))
    return replace(
        base,
        slices=tuple(on.applied("ResourceSlice", slices, new).values()),
        classes=on.applied("DeviceClass", base.classes, manifest.classes),
        claims=on.applied("ResourceClaim", base.claims, manifest.claims),
        templates=on.applied("ResourceClaimTemplate", base.templates, manifest.templates),
        pods=on.applied("Pod", base.pods, pods),
        nodes=on.applied("Node", base.nodes, manifest.nodes),
        taint_rules=tuple(
            on.applied("DeviceTaintRule", _by_key(base.taint_rules), _by_key(manifest.taint_rules)).values()
        ),
        quotas=tuple(on.applied("ResourceQuota", _by_key(base.quotas), _by_key(manifest.quotas)).values()),
        namespaces=on.applied("Namespace", base.namespaces, manifest.namespaces),
        others=others,
        notes=(*base.notes, *manifest.notes),
        sources=(*base.sources, *manifest.sources),
        individual=base.individual | manifest.individual,
        written={**base.written, **manifest.written},
        workloads=(*base.workloads, *manifest.workloads),
        created=on.created,
        refused=on.refused(base.refused),
    )


def with_events(base: Snapshot, more: Snapshot) -> Snapshot:
    """The snapshot with further events, read later."""
    return replace(base, events=tuple(dict.fromkeys((*base.events, *more.events))))


def with_kinds(base: Snapshot, more: Snapshot, kinds: Iterable[str], server: Server = SOME_SERVER) -> Snapshot:
    """The snapshot with objects of further kinds, read later; ``more`` has gaps for those that could not be read.

    What a manifest brought to the snapshot is applied to them.
    """
    on = _Applying(base.written, server, base.created)
    wanted = frozenset(kinds)
    read = {kind: more.others.get(kind, {}) for kind in wanted if kind in SCHEDULING_KINDS}
    return replace(
        base,
        others={
            **base.others,
            **{kind: on.applied(kind, live, base.others.get(kind, {})) for kind, live in read.items()},
        },
        quotas=tuple(on.applied("ResourceQuota", _by_key(more.quotas), _by_key(base.quotas)).values()),
        gaps=(
            *(gap for gap in base.gaps if gap.kind not in wanted or gap.reason != ABSENT),
            *(gap for gap in more.gaps if gap.kind in wanted and gap not in base.gaps),
        ),
        created=on.created,
        refused=on.refused(base.refused),
    )


class _Applying:
    """Applies the objects of a manifest, and remembers what that creates and what the server refuses.

    ``created`` was created before; what is found in the cluster after all was not.
    """

    def __init__(
        self, written: Mapping[WrittenKey, Mapping[str, Any]], server: Server, created: frozenset[WrittenKey]
    ) -> None:
        self._written = written
        self._server = server
        self.created = created
        self._refused: dict[WrittenKey, RefusedChange] = {}

    def applied(self, kind: str, live: Mapping[K, Any], new: Mapping[K, Any]) -> dict[K, Any]:
        """The objects of a kind: those that exist and those that are new, by their keys."""
        out = {**live, **new}
        for key in new:
            namespace, name = key if isinstance(key, tuple) else ("", key)
            written = self._written.get((kind, namespace, name))
            there = frozenset({(kind, namespace, name)})
            self.created = self.created - there if key in live else self.created | there
            if key in live and written is not None:
                out[key], fields = apply(kind, live[key], new[key], written, self._server)
                if fields:
                    self._refused[kind, namespace, name] = RefusedChange(kind, namespace, name, fields)
        return out

    def refused(self, before: Iterable[RefusedChange]) -> tuple[RefusedChange, ...]:
        """All that is refused, each object once."""
        return tuple({**{refused_change[:3]: refused_change for refused_change in before}, **self._refused}.values())


def _by_key(entries: Iterable[Any]) -> dict[Key, Any]:
    return {(item.metadata.namespace, item.metadata.name): item for item in entries}
