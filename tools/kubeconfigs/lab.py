"""Servers, proxies, certificates and plugins on this machine, which write down what clients send them.

Texts of cases have marks such as ``@https@`` where addresses and files of one lab go; what was seen has them again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

_COMPARED: Final = ("Authorization", "Proxy-Authorization")
NAMES: Final = ("far.test", "sub.far.test", "other.test")
"""Only a proxy leads there."""
_PLUGIN: Final = """#!{python} -I
import json, os, sys
folder = os.path.dirname(os.path.abspath(__file__))
seen = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with open(os.path.join({folder!r}, "plugin.log"), "a") as log:
    print(json.dumps([sys.argv[1:], os.environ.get("EXTRA", ""), seen]), file=log)
print(open(os.path.join({folder!r}, sys.argv[1] if len(sys.argv) > 1 else "credential.json")).read())
print("hint of the plugin", file=sys.stderr)
"""


_CREDENTIAL: Final = (
    '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
    '"status": {"token": "secret-of-the-plugin"}}'
)


class Lab:
    """All of it, in a directory. ``seen`` is what clients did since it was last taken."""

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        self.seen: list[dict[str, Any]] = []
        self.folder: Final = directory / "case"
        self._certificates()
        plain = self._server("http", None)
        secure = self._server("https", self._context("server", verify=True))
        strange = self._server("strange", self._context("strange", verify=False))
        self._servers = [plain, secure, strange]
        self._ports = {"http": plain.server_port, "https": secure.server_port, "strange": strange.server_port}
        for name, serve in (("proxy", self._proxy), ("socks", self._socks)):
            listener = socket.create_server(("127.0.0.1", 0))
            self._ports[name] = listener.getsockname()[1]
            threading.Thread(target=self._accept, args=(listener, serve), daemon=True).start()
        self.marks: Final = {
            **{f"@{name}@": f"127.0.0.1:{port}" for name, port in self._ports.items()},
            **{f"@{name}-port@": str(port) for name, port in self._ports.items()},
            **{f"@{name}-data@": b64encode((directory / f"{name}.pem").read_bytes()).decode() for name in _FILES},
            **{f"@{name}-json@": json.dumps((directory / f"{name}.pem").read_text()) for name in _FILES},
            **{f"@{name}-pem@": (directory / f"{name}.pem").read_text() for name in _FILES},
            "@dir@": str(directory),
        }

    def filled(self, value: Any) -> Any:
        """The value with the lab's own addresses and files in place of marks."""
        if isinstance(value, str):
            for mark, text in self.marks.items():
                value = value.replace(mark, text)
            return value
        if isinstance(value, Mapping):
            return {key: self.filled(inner) for key, inner in value.items()}
        return [self.filled(inner) for inner in value] if isinstance(value, list | tuple) else value

    def marked(self, value: Any) -> Any:
        """The reverse of ``filled``."""
        text = json.dumps(value)
        for mark, own in self.marks.items():
            text = text.replace(own, mark)
        return json.loads(text)

    def taken(self) -> list[dict[str, Any]]:
        """What was seen since the last call, with marks; the runs of plugins first."""
        log = self.folder / "plugin.log"
        runs = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        log.unlink(missing_ok=True)
        seen, self.seen = self.seen, []
        plugins = [{"plugin": words, "extra": extra, "info": info} for words, extra, info in runs]
        out: list[dict[str, Any]] = self.marked([*plugins, *seen])
        return out

    def lay_out(self, texts: Mapping[str, str]) -> None:
        """Make the folder of a case anew, with these files beside certificates and a plugin."""
        shutil.rmtree(self.folder, ignore_errors=True)
        binaries = self.folder / "bin"
        binaries.mkdir(parents=True)
        for name in _FILES:
            shutil.copy(self.directory / f"{name}.pem", self.folder)
        for path in (self.folder / "plugin", binaries / "on-path"):
            path.write_text(_PLUGIN.format(python=sys.executable, folder=str(self.folder)))
            path.chmod(0o755)
        for name, text in {"credential.json": _CREDENTIAL, **texts}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.filled(text))

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    # --- certificates ---------------------------------------------------------------------------

    def _certificates(self) -> None:
        names = ",".join(f"DNS:{name}" for name in ("localhost", "named.test", *NAMES))
        self._openssl("req -x509 -nodes -days 3650 -subj /CN=authority -keyout ca-key.pem -out ca.pem")
        self._openssl("req -x509 -nodes -days 3650 -subj /CN=strange -keyout strange-key.pem -out strange.pem")
        (self.directory / "names").write_text(f"subjectAltName=IP:127.0.0.1,{names}\n")
        for name, more in (("server", "-extfile names"), ("client", ""), ("client2", "")):
            self._openssl(f"req -nodes -subj /CN={name} -keyout {name}-key.pem -out request.pem")
            words = f"x509 -req -days 3650 -CA ca.pem -CAkey ca-key.pem -CAcreateserial -in request.pem -out {name}.pem"
            self._openssl(f"{words} {more}".strip(), key=False)

    def _openssl(self, words: str, *, key: bool = True) -> None:
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] if key else []
        command = ["openssl", *words.split(), *curve]
        subprocess.run(command, cwd=self.directory, check=True, capture_output=True)

    def _context(self, name: str, *, verify: bool) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.directory / f"{name}.pem", self.directory / f"{name}-key.pem")
        if verify:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(self.directory / "ca.pem")
        return context

    # --- servers --------------------------------------------------------------------------------

    def _server(self, name: str, context: ssl.SSLContext | None) -> ThreadingHTTPServer:
        lab = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                peer = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
                names: Any = (peer or {}).get("subject", ())
                subject = dict(pair for pairs in names for pair in pairs)
                lab.seen.append(_request(name, self.path, dict(self.headers.items()), self.headers.items(), subject))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 128

            def finish_request(self, request: Any, client_address: Any) -> None:
                with suppress(OSError):
                    # A thread of its own, so that nobody waits for somebody's handshake.
                    secure = context.wrap_socket(request, server_side=True) if context is not None else request
                    Handler(secure, client_address, self)
                    secure.close()

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        server = Server(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    # --- proxies --------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket, serve: Any) -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_quietly, args=(serve, client), daemon=True).start()

    def _proxy(self, client: socket.socket) -> None:
        """An HTTP proxy: a tunnel ends at the server with TLS, what it reads itself it answers itself."""
        with client, client.makefile("rb") as read:
            method, target, _ = read.readline().decode().split()
            pairs = []
            while line := read.readline().decode().strip():
                pairs.append((line.partition(": ")[0], line.partition(": ")[2]))
            self.seen.append(_request("proxy", f"{method} {target}", dict(pairs), pairs, {}))
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                self._lead(client, "https")
            else:
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

    def _socks(self, client: socket.socket) -> None:
        read = client.makefile("rb", buffering=0)
        with client, read:
            count = _exactly(read, 2)[1]
            methods = _exactly(read, count)
            client.sendall(bytes((5, 2 if 2 in methods else 0)))
            login = ""
            if 2 in methods:
                _exactly(read, 1)
                login = ":".join(_exactly(read, _exactly(read, 1)[0]).decode() for _ in range(2))
                client.sendall(b"\1\0")
            kind = _exactly(read, 4)[3]
            address = _exactly(read, {1: 4, 4: 16}.get(kind) or _exactly(read, 1)[0])
            port = int.from_bytes(_exactly(read, 2), "big")
            self.seen.append({"by": "socks", "to": address.decode("latin-1"), "port": port, "login": login})
            client.sendall(bytes((5, 0, 0, 1, 0, 0, 0, 0, 0, 0)))
            self._lead(client, "https" if port == 6443 else "http")

    def _lead(self, client: socket.socket, name: str) -> None:
        with socket.create_connection(("127.0.0.1", self._ports[name])) as server:
            threading.Thread(target=_quietly, args=(_pass_on, server, client), daemon=True).start()
            _pass_on(client, server)


_FILES: Final = ("ca", "strange", "client", "client-key", "client2", "client2-key")


def _request(
    name: str, target: str, headers: Mapping[str, str], pairs: Any, subject: Mapping[str, str]
) -> dict[str, Any]:
    # kubectl adds its --request-timeout to the query.
    seen: dict[str, Any] = {"by": name, "target": target.partition("?")[0], "host": headers.get("Host", "")}
    seen |= {word: headers[word] for word in _COMPARED if word in headers}
    said = sorted([key.title(), value] for key, value in pairs if key.lower().startswith("impersonate-"))
    if said:
        seen["impersonates"] = said
    if subject:
        seen["certificate"] = subject.get("commonName", "")
    if not re.match(r"127\.|\[::1\]|localhost", seen["host"]):
        # On this machine packing only costs time, and we do not ask for it.
        seen["packed"] = "gzip" in headers.get("Accept-Encoding", "")
    return seen


def _exactly(read: Any, size: int) -> bytes:
    out = b""
    while len(out) < size:
        part = read.read(size - len(out))
        if not part:
            raise OSError
        out += part
    return out


def _quietly(work: Any, *arguments: Any) -> None:
    with suppress(OSError, ValueError, IndexError):
        work(*arguments)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    while data := one.recv(65536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)


@contextmanager
def environment(lab: Lab, variables: Mapping[str, str]) -> Iterator[None]:
    """Nothing of the machine's own configuration but these variables, in the folder of the case."""
    before, folder = dict(os.environ), Path.cwd()
    kept = {"PATH": f"/usr/bin:/bin:{lab.folder}/bin", "HOME": str(lab.folder / "home"), "LANG": "C.UTF-8"}
    os.environ.clear()
    os.environ.update(kept | lab.filled(variables))
    os.chdir(lab.folder)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)
