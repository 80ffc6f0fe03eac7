"""An API server that can be watched: it keeps objects, tells their changes in streams, forgets, fails and goes away."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS, kind_here
from kubectl_dra.api.releases import PLURALS
from kubectl_dra.cluster.kinds import CORE_PLURALS, SCHEDULING_KINDS
from tools.api_server import kubeconfig

Json = dict[str, Any]
_NAMESPACED: Final = re.compile(r"/namespaces/([^/]+)/")
GROUP: Final = "resource.k8s.io"


class Change(NamedTuple):
    """One change: the version that it makes, the path of the collection, what happened, and to which object."""

    version: int
    path: str
    type: str
    object: Json


def collection(kind: str) -> str:
    """The path at which a kind is listed."""
    if kind in CORE_PLURALS:
        return f"/api/v1/{CORE_PLURALS[kind]}"
    known = SCHEDULING_KINDS.get(kind)
    if known is None:
        return f"/apis/{GROUP}/v1/{PLURALS[kind]}"
    return f"/{f'apis/{known.group}' if known.group else 'api'}/{known.versions[0]}/{known.plural}"


class WatchedServer:
    """Serves ``objects`` of any kind that is read, of one release; changes go through ``put`` and ``delete``.

    ``refused`` are answers (status) by path, for lists or with ``?watch`` for watches alone.
    """

    def __init__(self, objects: Iterable[Json] = (), release: str = "v1.36.3") -> None:
        self.asked: list[str] = []
        self.refused: dict[str, int] = {}
        self._release = release
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._log: list[Change] = []
        self._version = 100
        self._oldest = 0
        self._epoch = 0
        self._condition = threading.Condition()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        for raw in objects:
            self.put(raw)
        self._log.clear()
        self._oldest = self._version
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def put(self, raw: Json) -> None:
        """Create or change an object."""
        path = collection(kind_here(raw["kind"], raw["apiVersion"]))
        key = (raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        with self._condition:
            self._version += 1
            metadata = {"uid": f"uid-{key[0]}-{key[1]}", **raw["metadata"], "resourceVersion": str(self._version)}
            raw = {**raw, "metadata": metadata}
            known = self._objects.setdefault(path, {})
            self._log.append(Change(self._version, path, "MODIFIED" if key in known else "ADDED", raw))
            known[key] = raw
            self._condition.notify_all()

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object."""
        path = collection(kind)
        with self._condition:
            self._version += 1
            raw = self._objects[path].pop((namespace, name))
            raw = {**raw, "metadata": {**raw["metadata"], "resourceVersion": str(self._version)}}
            self._log.append(Change(self._version, path, "DELETED", raw))
            self._condition.notify_all()

    def forget(self) -> None:
        """Forget all changes: who did not see them yet is told 410."""
        with self._condition:
            self._oldest = self._version
            self._log.clear()

    def end_watches(self) -> None:
        """End all streams, as servers do now and then."""
        with self._condition:
            self._epoch += 1
            self._condition.notify_all()

    def open(self) -> None:
        """Serve, at the port of before."""
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with suppress(OSError):
                    owner._answer(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            # As many callers at a time as a real one: with five, the next ones ask again after a second.
            request_queue_size = 128

        self._server = Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        """Go away; ``open`` comes back, with the same objects."""
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self.end_watches()

    def kubeconfig(self, directory: Path) -> str:
        """Writes a kubeconfig for this server; gives its path."""
        path = directory / "watched-kubeconfig"
        path.write_text(json.dumps(kubeconfig(self.url, {})))
        return str(path)

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = dict(parse_qsl(parts.query))
        if (space := _NAMESPACED.search(parts.path)) is not None:
            parts = parts._replace(path=_NAMESPACED.sub("/", parts.path))
            terms = (query.get("fieldSelector", ""), f"metadata.namespace={space[1]}")
            query["fieldSelector"] = ",".join(filter(None, terms))
        watch = "watch" in query
        self.asked.append(f"{parts.path}{'?watch' if watch else ''}")
        code = self.refused.get(f"{parts.path}?watch") if watch else None
        code = self.refused.get(parts.path) if code is None else code
        served = {collection(kind): kind.partition(".")[0] for kind in (*CORE_PLURALS, *SCHEDULING_KINDS, *PLURALS)}
        if code is not None:
            _send(handler, code, {"kind": "Status", "code": code, "message": f"refused with {code}"})
        elif parts.path == "/version":
            _send(handler, 200, {"gitVersion": self._release})
        elif parts.path == "/apis":
            _send(handler, 200, {"kind": "APIGroupDiscoveryList", "items": list(_groups())})
        elif parts.path == "/apis/scheduling.k8s.io":
            versions = {known.versions[0] for known in SCHEDULING_KINDS.values() if known.group == "scheduling.k8s.io"}
            _send(handler, 200, {"kind": "APIGroup", "versions": [{"version": name} for name in sorted(versions)]})
        elif parts.path not in served:
            _send(handler, 404, {"kind": "Status", "code": 404, "message": "not found"})
        elif watch:
            self._stream(handler, parts.path, query)
        else:
            with self._condition:
                items = [raw for raw in self._objects.get(parts.path, {}).values() if _selected(raw, query)]
                meta = {"resourceVersion": str(self._version)}
            version = "v1" if parts.path.startswith("/api/") else parts.path.split("/", 2)[2].rpartition("/")[0]
            kind = f"{served[parts.path]}List"
            _send(handler, 200, {"kind": kind, "apiVersion": version, "metadata": meta, "items": items})

    def _stream(self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]) -> None:
        since, epoch = int(query["resourceVersion"]), self._epoch
        if since < self._oldest:
            _send(handler, 410, {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
            return
        handler.send_response(200)
        handler.end_headers()
        for change in self._changes(path, since, epoch):
            if change is not None and (change.type == "ERROR" or _selected(change.object, query)):
                line = json.dumps({"type": change.type, "object": change.object}).encode() + b"\n"
                handler.wfile.write(line)
            handler.wfile.flush()

    def _changes(self, path: str, since: int, epoch: int) -> Iterator[Change | None]:
        while epoch == self._epoch:
            with self._condition:
                if since < self._oldest:
                    yield Change(0, path, "ERROR", {"kind": "Status", "code": 410, "message": "too old"})
                    return
                new = [change for change in self._log if change.version > since and change.path == path]
                since = self._version
                if not new:
                    self._condition.wait(1)
            yield from new
            yield None


def _groups() -> Iterator[Json]:
    """What aggregated discovery tells of resource.k8s.io and of the kinds of other layers."""
    groups = {GROUP: {"v1": list(PLURALS.values())}}
    for row in NEIGHBOUR_KINDS.values():
        groups.setdefault(row.group, {}).setdefault(row.versions[0], []).append(row.plural)
    for group, versions in groups.items():
        served = [
            {"version": version, "resources": [{"resource": name} for name in names]}
            for version, names in versions.items()
        ]
        yield {"metadata": {"name": group}, "versions": served}


def _send(handler: BaseHTTPRequestHandler, code: int, body: Json) -> None:
    data = json.dumps(body).encode()
    handler.send_response(code)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def _selected(raw: Json, query: dict[str, str]) -> bool:
    """Whether a field selector of events takes the object."""
    for term in filter(None, query.get("fieldSelector", "").split(",")):
        name, _, value = term.partition("=")
        found: Any = raw
        for part in name.split("."):
            found = (found or {}).get(part)
        if found != value:
            return False
    return True
