"""Names from the cluster or snapshot that the command line names, as far as available within the time-out."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Final, TypeVar

from kubectl_dra.cli.completion.words import VALUES, TypedWords
from kubectl_dra.cli.kind_words import KINDS, WORKLOADS, kind_of

if TYPE_CHECKING:
    from kubectl_dra.cluster.snapshot import Snapshot

T = TypeVar("T")

TIMEOUT: Final = 1.5
"""The default time-out in seconds."""
TIMEOUT_VARIABLE: Final = "KUBECTL_DRA_COMPLETION_TIMEOUT"
MANY: Final = 100

Named = tuple[str, str]
"""A candidate and its meaning."""
_ALONE: Final = ("node", "class", "device", "driver")
"""What ``explain`` takes one at a time."""
_READS: Final = {
    "target": ("Pod", "ResourceClaim"),
    "template": ("ResourceClaimTemplate",),
    "namespace": ("Namespace",),
    "node": ("Node",),
    "class": ("DeviceClass",),
    "driver": ("ResourceSlice",),
    "pool": ("ResourceSlice",),
    "device": ("ResourceSlice",),
    "taint": ("ResourceSlice", "DeviceTaintRule"),
    "untaint": ("DeviceTaintRule",),
    "request": ("ResourceClaim", "Pod"),
    "pod": ("Pod",),
    "claim": ("ResourceClaim",),
    "held": ("ResourceClaim",),
}


def candidates(typed: TypedWords) -> tuple[list[Named], bool]:
    """Candidates with their meanings, best first, and whether a chosen one continues (no space after it).

    Any failure (no cluster, no permission, no answer in time) gives fewer candidates, never an error.
    """
    kind = str(typed.kind)
    if kind in ("context", "cluster", "user"):
        return _named_in_kubeconfig(typed, kind), False
    if kind == "change":
        return _changes(typed)
    if kind == "target":
        return _targets(typed)
    if "+" in kind:
        return _tainting(typed, kind.partition("+")[2])
    if kind in ("taint", "untaint"):
        return _taint_words(typed, kind)
    snapshot = _read(typed, _READS.get(kind, ()))
    if snapshot is None:
        return [], False
    if kind == "device":
        return _devices(snapshot, typed.typed)
    return list(dict.fromkeys(_names(kind, snapshot, typed))), False


# --- candidates ------------------------------------------------------------------------------------


def _names(kind: str, snapshot: Snapshot, typed: TypedWords) -> Iterator[Named]:
    if kind == "namespace":
        # Few snapshots have Namespace objects.
        of_objects = (space for keys in (snapshot.pods, snapshot.claims, snapshot.templates) for space, _ in keys)
        yield from _plain({*snapshot.namespaces, *of_objects})
    elif kind == "node":
        yield from _plain(snapshot.nodes)
    elif kind == "class":
        yield from _plain(snapshot.classes)
    elif kind == "template":
        own = _namespace(typed, snapshot)
        yield from _plain(name for space, name in snapshot.templates if space == own)
    elif kind == "driver":
        yield from _plain({slice_.driver for slice_ in snapshot.slices})
    elif kind == "pool":
        for pool in sorted({slice_.pool for slice_ in snapshot.slices}):
            yield f"{pool.driver}/{pool.name}" if typed.typed.startswith(f"{pool.driver}/") else pool.name, pool.driver
    elif kind == "request":
        yield from _requests(snapshot, typed)
    elif kind in ("pod", "claim"):
        yield from ((name, text) for _, name, text in sorted(_of_namespace(kind, snapshot, typed), key=itemgetter(0)))


def _plain(names: Iterable[str], start: str = "") -> list[Named]:
    """Names without a meaning, sorted, each behind ``start``."""
    return [(start + name, "") for name in sorted(names)]


def _targets(typed: TypedWords) -> tuple[list[Named], bool]:
    """Names of the kind that is typed, or of pods and claims; of these what is pending first.

    Only the words for kinds where nothing is known, or one of them is begun.
    """
    first = kind_of(typed.arguments[0].partition("/")[0]) if typed.arguments else ""
    if first in _ALONE:
        return [], False
    if first and "/" not in typed.arguments[0]:
        # TYPE NAME...
        return _of_kind(typed, first, "")
    word, slash, _ = typed.typed.partition("/")
    if slash:
        return _of_kind(typed, kind_of(word), f"{word}/")
    begun = [(f"{known}/", "") for known in _kinds_begun(word) if not (typed.arguments and known in _ALONE)]
    snapshot = _read(typed, _READS["target"])
    if snapshot is None:
        return begun, True
    targets: list[tuple[bool, str, str]] = []
    for kind in ("pod", "claim"):
        # Whoever begins with a name completes a name.
        prefix = f"{kind}/" if begun else ""
        listed = _of_namespace(kind, snapshot, typed)
        targets += [(not pending, f"{prefix}{name}", text) for pending, name, text in listed]
    names = [(name, text) for _, name, text in sorted(targets, key=itemgetter(0)) if name.startswith(word)]
    more = [proposal for proposal in begun if proposal[0] not in ("pod/", "claim/")] if names else begun
    return [*names, *more], not names


def _kinds_begun(word: str) -> tuple[str, ...]:
    """The words for kinds that begin so; without any letter those that most ask about."""
    if not word:
        return ("pod", "claim")
    words = dict.fromkeys(kind.lower() for kind in (*KINDS.values(), *WORKLOADS.values()))
    return tuple(known for known in words if known.startswith(word))


def _of_kind(typed: TypedWords, kind: str, start: str) -> tuple[list[Named], bool]:
    """The names of a kind that ``explain`` takes, each behind ``start``."""
    snapshot = _read(typed, _READS.get(kind, ("Pod",))) if kind else None
    if snapshot is None:
        return [], False
    if kind == "device":
        return _devices(snapshot, typed.typed.removeprefix(start), start)
    if kind in WORKLOADS.values():
        from kubectl_dra.cluster.workload_pods import workloads_of

        pods = [pod for (where, _), pod in snapshot.pods.items() if where == _namespace(typed, snapshot)]
        return _plain({owner.name for pod in pods for owner in workloads_of(pod) if owner.kind == kind}, start), False
    if kind in ("pod", "claim"):
        named = _of_namespace(kind, snapshot, typed)
        listed = [(name, text) for _, name, text in sorted(named, key=lambda entry: not entry[0])]
    else:
        listed = list(_names(kind, snapshot, typed))
    return [(start + name, text) for name, text in listed if start + name not in typed.arguments], False


def _of_namespace(kind: str, snapshot: Snapshot, typed: TypedWords) -> Iterator[tuple[bool, str, str]]:
    """The pods or claims of the namespace that is meant: whether each is pending, its name and what it is like."""
    namespace = _namespace(typed, snapshot)
    if kind == "claim":
        for (where, name), claim in sorted(snapshot.claims.items()):
            if where == namespace:
                pending = claim.allocation is None
                yield pending, name, "pending" if pending else "allocated"
        return
    for (where, name), pod in sorted(snapshot.pods.items()):
        pending = not pod.node_name and not pod.metadata.deletion_timestamp
        if where == namespace and (pod.claims or pending):
            count = f"{len(pod.claims)} claim{'' if len(pod.claims) == 1 else 's'}" if pod.claims else "no claims"
            yield pending, name, f"{'pending' if pending else f'on {pod.node_name}'}, {count}"


def _requests(snapshot: Snapshot, typed: TypedWords) -> Iterator[Named]:
    """The requests of the claims of the pod or claim on the command line; of all claims if it names none."""
    namespace = _namespace(typed, snapshot)
    kind, _, name = typed.arguments[0].partition("/") if typed.arguments else ("", "", "")
    for (where, claim_name), claim in sorted(snapshot.claims.items()):
        owners = {owner.name for owner in claim.metadata.owners if owner.kind == "Pod"}
        is_pod = kind_of(kind) == "pod"
        if where != namespace or (name and name not in (owners if is_pod else {claim_name})):
            continue
        for request in claim.requests:
            yield request.name, claim_name
            yield from ((f"{request.name}/{spec.name}", claim_name) for spec in request.first_available)


def _devices(snapshot: Snapshot, typed: str, start: str = "") -> tuple[list[Named], bool]:
    """Devices as driver/pool/device, or as pool/device if begun that way; part by part if there are many."""
    from kubectl_dra.api.slices import newest_slices

    slices = [slice_ for entries in newest_slices(snapshot.slices).values() for slice_ in entries]
    full = {f"{slice_.pool}/{device.name}" for slice_ in slices for device in slice_.devices}
    short = {name.partition("/")[2] for name in full}
    matching = next((found for names in (full, short) if (found := [n for n in names if n.startswith(typed)])), [])
    if len(matching) > MANY:
        parts = {typed + name[len(typed) :].partition("/")[0] + "/" for name in matching if "/" in name[len(typed) :]}
        if parts:
            return _plain(parts, start), True
    return _plain(matching, start), False


def _tainting(typed: TypedWords, kind: str) -> tuple[list[Named], bool]:
    """Devices first; after one of them also taints."""
    has_device = any(":" not in word and "=" not in word and not word.endswith("-") for word in typed.arguments)
    if ":" in typed.typed or "=" in typed.typed:
        return _taint_words(typed, kind)
    taints = _taint_words(typed, kind)[0] if has_device or typed.typed else []
    snapshot = _read(typed, ("ResourceSlice",))
    devices, more = _devices(snapshot, typed.typed) if snapshot is not None else ([], False)
    return [*taints, *devices], more and not taints


def _taint_words(typed: TypedWords, kind: str) -> tuple[list[Named], bool]:
    """Taints as key:effect with the keys in use; for removal those of rules, with a hyphen."""
    key, colon, _ = typed.typed.rpartition(":")
    if colon and kind == "taint":
        return [(f"{key}:{effect}", text) for effect, text in VALUES["effect"]], False
    snapshot = _read(typed, _READS[kind])
    if snapshot is None:
        return [], False
    rules = [(rule.taint, f"rule {rule.metadata.name}") for rule in snapshot.taint_rules]
    if kind == "untaint":
        return [(f"{taint.key}:{taint.effect}-", text) for taint, text in rules], False
    published = (
        (taint, slice_.driver) for slice_ in snapshot.slices for device in slice_.devices for taint in device.taints
    )
    used = [*rules, *((taint, f"published by {driver}") for taint, driver in published)]
    taints = {f"{taint.key}:{effect}": text for taint, text in used for effect, _ in VALUES["effect"]}
    return list(taints.items()), False


def _changes(typed: TypedWords) -> tuple[list[Named], bool]:
    """Values of ``--what-if``: classes, claims that hold something, devices."""
    change = typed.typed.partition("=")[0] + "="
    kind = {"class=": "class", "free=": "held", "untaint=": "device"}[change]
    snapshot = _read(typed, _READS[kind])
    if snapshot is None:
        return [], False
    if kind == "device":
        return _devices(snapshot, typed.typed.removeprefix(change), change)
    if kind == "class":
        return _plain(snapshot.classes, change), False
    held = sorted(key for key, claim in snapshot.claims.items() if claim.allocation is not None)
    return [(f"{change}{space}/{name}", "") for space, name in held], False


# --- where from --------------------------------------------------------------------------------------


def _read(typed: TypedWords, kinds: Iterable[str]) -> Snapshot | None:
    """Objects of these kinds, from the snapshot on the command line or the cluster; None if unavailable in time."""
    wanted = tuple(kinds)
    paths = typed.given.get("--snapshot")
    if paths:

        def from_files() -> Snapshot:
            from kubectl_dra.cluster.files import read_snapshot

            return read_snapshot(
                [path for path in paths if path != "-"], namespace=_given(typed, "--namespace") or "default"
            )

        return _in_time(from_files)
    return _in_time(lambda: _from_cluster(typed, wanted))


def _from_cluster(typed: TypedWords, kinds: tuple[str, ...]) -> Snapshot:
    from kubectl_dra.cli.command_line import connection_given
    from kubectl_dra.cli.live import api_server
    from kubectl_dra.cluster.builder import SnapshotBuilder
    from kubectl_dra.cluster.duplicates import Place
    from kubectl_dra.cluster.reader import whole
    from kubectl_dra.errors import DraError

    limit = f"{max(int(timeout() * 1000), 1)}ms"
    connection = connection_given({**typed.given, "--request-timeout": (limit,)})
    cluster = api_server(connection, _given(typed, "--namespace"), sleep=lambda seconds: None)
    builder = SnapshotBuilder(cluster.namespace)
    builder.source(cluster.namespace)
    for kind in kinds:
        namespace = "" if typed.kind == "change" else cluster.namespace
        # One page is enough to choose from; of the pods those that wait come first.
        queries: tuple[dict[str, str], ...] = ({"fieldSelector": "spec.nodeName="}, {}) if kind == "Pod" else ({},)
        seen: set[str] = set()
        for query in queries:
            try:
                path = cluster.path(kind, namespace)
                if path is None:
                    break
                for page in cluster.client.pages(path, query):
                    for raw in page.items:
                        item = whole(raw, page)
                        if (uid := str((item.get("metadata") or {}).get("uid"))) not in seen:
                            seen.add(uid)
                            builder.add(item, Place(kind))
                    break
            except DraError:
                break
    return builder.build(complete=True)


def _namespace(typed: TypedWords, snapshot: Snapshot) -> str:
    """The namespace meant: the flag's, else the connection's, which a live snapshot has as its source."""
    given = _given(typed, "--namespace")
    if given or "--snapshot" in typed.given:
        return given or "default"
    return snapshot.sources[0] if snapshot.sources else "default"


def _named_in_kubeconfig(typed: TypedWords, kind: str) -> list[Named]:
    def names() -> list[Named]:
        from pathlib import Path

        from kubectl_dra.cluster.kubeconfig import content_of

        listed = _given(typed, "--kubeconfig") or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        contexts: dict[str, str] = {}
        for path in filter(None, listed.split(os.pathsep)):
            file = Path(path).expanduser()
            # One that is broken elsewhere still has names; aliases are limited.
            entries = content_of(str(file)).get(f"{kind}s") if file.exists() else None
            for item in entries if isinstance(entries, list) else ():
                if isinstance(item, Mapping) and isinstance(item.get("name"), str):
                    contexts.setdefault(item["name"], "")
        return sorted(contexts.items())

    return _in_time(names) or []


def _given(typed: TypedWords, flag: str) -> str:
    return (typed.given.get(flag) or ("",))[-1]


def timeout() -> float:
    """Seconds to wait for a cluster or file."""
    try:
        return float(os.environ.get(TIMEOUT_VARIABLE, TIMEOUT))
    except ValueError:
        return TIMEOUT


def _in_time(work: Callable[[], T]) -> T | None:
    """The result of some work; None if it fails or takes too long."""
    if timeout() <= 0:
        return None
    results: list[T] = []

    def run() -> None:
        # Completion has no place for a message: what fails gives no candidates.
        try:
            results.append(work())
        except Exception:
            return

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(timeout())
    return results[0] if results else None
