"""`kubectl dra explain` on a very large live cluster: `python -m tools.benchmarks.paged [--nodes N] [--pods N]`.

A process of its own serves the lists of the cluster of `tools.benchmarks.explain` in pages over HTTP, made while
they are asked for; the command reads them through a kubeconfig. Printed are wall time, CPU time and the peak of
memory of the command alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tools.benchmarks.explain import (
    GPUS,
    HEAD,
    HELD_MODEL,
    JSON,
    MODELS,
    QUESTIONS,
    holder,
    model,
    node_of,
    objects,
    run,
    slice_of,
)
from tools.benchmarks.pods import ordinary_pods

GROUP = "/apis/resource.k8s.io"
PLURALS = {
    "ResourceSlice": "resourceslices",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}
MARK = 99_000_000
"""The number of a node that stands for any other in a template."""


@cache
def template(make: Callable[[int], JSON], kind: int) -> str:
    """The text of an object of a node with the given model, for node MARK, as the API server writes a list's items."""
    raw = make(MARK + kind)
    return compact({key: raw[key] for key in raw if key not in ("apiVersion", "kind")})


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def text_of(make: Callable[[int], JSON], node: int) -> str:
    """The object of one node, without building it anew: names and UUIDs are put into the text."""
    kind = node % len(MODELS)
    mark = MARK + kind
    text = template(make, kind).replace(f"node-{mark:05}", f"node-{node:05}").replace(f"{mark:08x}", f"{node:08x}")
    return text.replace(f"-{mark}", f"-{node}")


class Lists:
    """All lists of a cluster, a page at a time."""

    def __init__(self, nodes: int, pods: int = 0) -> None:
        self._pods = range(pods)
        self._few = list(objects(0))
        self._nodes = nodes
        self._held = [node for node in range(nodes) if model(node)[0] == HELD_MODEL]

    def page(self, kind: str, start: int, limit: int) -> bytes:
        """One page of a kind."""
        few = [compact({"metadata": entry["metadata"], **entry}) for entry in self._few if entry["kind"] == kind]
        total = len(few) + len(self._of_nodes(kind))
        end = min(total, start + limit)
        texts = few[start:end]
        texts.extend(self._many(kind, max(start - len(few), 0), end - len(few)))
        version = "v1" if kind in ("Node", "Pod") else "resource.k8s.io/v1"
        meta = {"resourceVersion": "1"}
        if end < total:
            meta |= {"continue": str(end), "remainingItemCount": total - end}  # type: ignore[dict-item]
        head = compact({"kind": f"{kind}List", "apiVersion": version, "metadata": meta})
        return f'{head[:-1]},"items":[{",".join(texts)}]}}\n'.encode()

    def _of_nodes(self, kind: str) -> range | list[int]:
        if kind == "Pod":
            return self._pods
        if kind in ("Node", "ResourceSlice"):
            return range(self._nodes)
        return self._held if kind == "ResourceClaim" else []

    def _many(self, kind: str, start: int, end: int) -> Iterator[str]:
        if kind == "Pod":
            yield from ordinary_pods(self._pods[start : max(end, 0)], self._nodes)
            return
        make = {"Node": node_of, "ResourceSlice": slice_of, "ResourceClaim": holder}.get(kind)
        for node in self._of_nodes(kind)[start : max(end, 0)] if make else ():
            assert make is not None
            yield text_of(make, node)


def serve(nodes: int, pods: int) -> None:
    """Serves the cluster; prints the port."""
    lists = Lists(nodes, pods)
    kinds = {f"{GROUP}/v1/{plural}": kind for kind, plural in PLURALS.items()}
    kinds |= {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/namespaces": "Namespace"}
    kinds |= {"/api/v1/resourcequotas": "ResourceQuota", "/api/v1/events": "Event"}
    fixed: dict[str, JSON] = {
        "/version": {"gitVersion": "v1.36.3"},
        GROUP: {"kind": "APIGroup", "versions": [{"version": "v1"}]},
        f"{GROUP}/v1": {"kind": "APIResourceList", "resources": [{"name": plural} for plural in PLURALS.values()]},
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = parse_qs(parts.query)
            kind = kinds.get(parts.path)
            if kind is not None:
                start, limit = int(query.get("continue", ["0"])[0]), int(query.get("limit", ["500"])[0])
                body = lists.page(kind, start, limit)
            else:
                body = json.dumps(fixed.get(parts.path, {"kind": "Status", "code": 404})).encode()
            self.send_response(200 if kind or parts.path in fixed else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


def kubeconfig(directory: Path, port: int) -> Path:
    path = directory / "kubeconfig"
    entries = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "x", **entries}))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=125_000)
    parser.add_argument("--pods", type=int, default=500_000, help="ordinary pods of 6 KB")
    parser.add_argument("--serve", action="store_true", help="only serve, and print the port")
    parser.add_argument("--question", action="append", choices=list(QUESTIONS))
    options = parser.parse_args()
    if options.serve:
        serve(options.nodes, options.pods)
        return
    command = [sys.executable, "-m", "tools.benchmarks.paged", "--serve", "--nodes", str(options.nodes)]
    command += ["--pods", str(options.pods)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        devices = options.nodes * GPUS
        print(f"{options.nodes:,} nodes, {devices:,} devices, {options.pods:,} pods, pages of 500 over HTTP\n")
        print(HEAD)
        with tempfile.TemporaryDirectory(prefix="kubectl-dra-") as directory:
            path = kubeconfig(Path(directory), port)
            for name in options.question or QUESTIONS:
                run(name, "--kubeconfig", str(path))
                time.sleep(0.1)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
