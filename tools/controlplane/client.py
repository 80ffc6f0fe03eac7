"""The Kubernetes API as JSON over HTTPS: only what tests need, on the standard library."""

from __future__ import annotations

import base64
import http.client
import json
import select
import socket
import ssl
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

Json = dict[str, Any]


class ApiError(Exception):
    """The server refused: `status` is the HTTP code, `reason`, `message` and `causes` are from its Status object."""

    def __init__(self, status: int, body: Json) -> None:
        self.status = status
        self.reason: str = body.get("reason", "")
        self.message: str = body.get("message", "")
        self.causes: list[Json] = (body.get("details") or {}).get("causes") or []
        super().__init__(f"{status} {self.reason}: {self.message}")


class Resource(NamedTuple):
    """How the server names a kind in URLs."""

    plural: str
    namespaced: bool


class Api:
    """One user's connection to one API server. Not for use by several threads at once."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        config: Json = json.loads(kubeconfig.read_text())
        chosen = _named(config["contexts"], context)["context"]
        cluster = _named(config["clusters"], chosen["cluster"])["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.server: str = cluster["server"]
        self._token: str = _named(config["users"], chosen["user"])["user"]["token"]
        self._connection = http.client.HTTPSConnection(
            urlsplit(self.server).netloc, timeout=30, context=ssl.create_default_context(cadata=authority)
        )
        self._resources: dict[str, dict[str, Resource]] = {}

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def request(self, method: str, path: str, body: Json | None = None, content_type: str = "application/json") -> Json:
        """Send one request and return the object answered. Raises ApiError for codes from 400."""
        status, text = self._send(method, path, body, content_type)
        try:
            decoded: Json = json.loads(text)
        except ValueError:
            decoded = {"message": text}
        if status >= 400:
            raise ApiError(status, decoded)
        return decoded

    def text(self, path: str) -> str:
        """Read what is not JSON, such as `/metrics`. Raises ApiError for codes from 400."""
        status, text = self._send("GET", path)
        if status >= 400:
            raise ApiError(status, {"message": text})
        return text

    def _send(
        self, method: str, path: str, body: Json | None = None, content_type: str = "application/json"
    ) -> tuple[int, str]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json, */*"}
        if body is not None:
            headers["Content-Type"] = content_type
        # Without spaces, as kubectl sends it: the server keeps the text of a driver's parameters, and a later patch
        # would seem to change it.
        payload = None if body is None else json.dumps(body, separators=(",", ":"))
        idle = self._connection.sock
        if idle is not None and _readable(idle):
            # The server has closed it meanwhile; the next request makes a fresh one.
            self._connection.close()
        try:
            self._connection.request(method, path, payload, headers)
            answer = self._connection.getresponse()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self._connection.close()
            if method == "POST":
                # It may have been carried out, and would be twice. What else there is has the same effect twice.
                raise
            self._connection.request(method, path, payload, headers)
            answer = self._connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")

    def versions(self, group: str) -> list[str]:
        """The versions of an API group that are served, preferred first."""
        return [version["version"] for version in self.request("GET", f"/apis/{group}")["versions"]]

    def kinds(self, api_version: str) -> dict[str, Resource]:
        """The kinds of a served group version (`v1`, `resource.k8s.io/v1`)."""
        if api_version not in self._resources:
            listed = self.request("GET", _root(api_version))["resources"]
            self._resources[api_version] = {
                item["kind"]: Resource(item["name"], item["namespaced"]) for item in listed if "/" not in item["name"]
            }
        return self._resources[api_version]

    def path(self, api_version: str, kind: str, namespace: str = "", name: str = "") -> str:
        """The URL path of a collection (all namespaces when none is given), or of one object."""
        plural, namespaced = self.kinds(api_version)[kind]
        within = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{_root(api_version)}{within}/{plural}" + (f"/{name}" if name else "")

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> Json:
        """Read one object."""
        return self.request("GET", self.path(api_version, kind, namespace, name))

    def list(self, api_version: str, kind: str, namespace: str = "", **query: str) -> list[Json]:
        """Read all objects of a kind; `query` holds parameters such as fieldSelector."""
        suffix = f"?{urlencode(query)}" if query else ""
        items: list[Json] = self.request("GET", self.path(api_version, kind, namespace) + suffix)["items"]
        return items

    def create(self, obj: Json) -> Json:
        """Create an object, strictly: a field the server does not know is an error."""
        path = self.path(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace", ""))
        return self.request("POST", f"{path}?fieldValidation=Strict", obj)

    def patch(self, obj: Json, change: Json, subresource: str = "") -> Json:
        """Apply a JSON merge patch to an object, or to one of its subresources (`status`)."""
        path = self._path_of(obj) + (f"/{subresource}" if subresource else "")
        return self.request("PATCH", path, change, "application/merge-patch+json")

    def delete(self, obj: Json, *, grace_seconds: int | None = None, missing_ok: bool = True) -> None:
        """Delete an object; `grace_seconds=0` removes a pod at once, without waiting for a kubelet."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        try:
            self.request("DELETE", self._path_of(obj), options)
        except ApiError as error:
            if not (missing_ok and error.status == 404):
                raise

    def _path_of(self, obj: Json) -> str:
        metadata = obj["metadata"]
        return self.path(obj["apiVersion"], obj["kind"], metadata.get("namespace", ""), metadata["name"])


def _readable(sock: socket.socket) -> bool:
    """Whether there is something to read: of an idle connection, its end. Any number of files may be open."""
    asked = select.poll()
    asked.register(sock, select.POLLIN)
    return bool(asked.poll(0))


def _named(entries: list[Json], name: str) -> Json:
    return next(entry for entry in entries if entry["name"] == name)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
