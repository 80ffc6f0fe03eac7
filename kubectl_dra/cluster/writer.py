"""The only module that writes to a cluster: server-side apply, create, merge patch and delete, one object
each.

Every write can be repeated safely: apply and delete name the object state that they expect, so a write whose
answer was lost is either found completed or refused when sent again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct, json

from kubectl_dra.cluster.client import Answered, Client, NoAnswer, wait_before
from kubectl_dra.cluster.transport import Reply
from kubectl_dra.errors import ClusterError

FIELD_MANAGER: Final = "kubectl-dra"
CONFLICT: Final = 409
_APPLY: Final = "application/apply-patch+yaml"
_JSON: Final = "application/json"
# No object ever has this version again: an apply with it can only create.
_NOT_THERE: Final = "1"
_TRIES: Final = 6
_LONGEST_WAIT: Final = 10.0
_BUSY: Final = frozenset((429, 500, 502, 503, 504))


class Conflict(Answered):
    """The object is not in the state that a write expected (409).

    ``owners`` are the field managers from which a forced apply would take fields; empty if the object itself
    has changed, already exists, or is gone. ``unsure``: an earlier attempt got no answer, so the change may
    come from this very write.
    """

    def __init__(self, message: str, owners: tuple[str, ...] = (), *, unsure: bool = False) -> None:
        super().__init__(CONFLICT, message)
        self.owners = owners
        self.unsure = unsure


class Writer:
    """Writes over a Client's connection. With ``dry_run`` the server checks everything and stores nothing."""

    def __init__(
        self,
        client: Client,
        field_manager: str = FIELD_MANAGER,
        *,
        dry_run: bool = False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client
        self._sleep = sleep
        self.field_manager: Final = field_manager
        self.dry_run: Final = dry_run

    def apply(self, path: str, content: Mapping[str, Any], *, version: str = "", force: bool = False) -> dict[str, Any]:
        """Server-side apply of one object. Returns it as stored.

        ``version`` is the resourceVersion that it must still have; empty if it must not exist yet. ``force``
        takes over fields from other managers.

        Raises:
            Conflict: the object exists, has changed, or belongs to another manager.
            Answered, ClusterError: the server refuses or cannot be reached.
        """
        metadata = {**content["metadata"], "resourceVersion": version or _NOT_THERE}
        query = {"fieldManager": self.field_manager, "fieldValidation": "Strict", "force": str(force).lower()}
        stored = self._send("PATCH", path, query, {**content, "metadata": metadata}, _APPLY)
        if _identity(stored) != _identity(content):
            raise ClusterError(
                f"{self._client.server}{path}: the answer is another object; whether the write was carried out is not "
                "known. Is this an API server?"
            )
        return stored

    def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object in a collection. Returns it as stored.

        Raises Conflict: it already exists; Answered, ClusterError: as ``apply``.
        """
        return self._send("POST", path, {"fieldManager": self.field_manager, "fieldValidation": "Strict"}, content)

    def delete(self, path: str, uid: str, version: str = "") -> bool:
        """Delete the object with this UID (and resourceVersion). False if it was already gone.

        Raises:
            Conflict: the name now belongs to another object, or the object has changed.
            Answered, ClusterError: as ``apply``.
        """
        preconditions = {"uid": uid, **({"resourceVersion": version} if version else {})}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        if self.dry_run:
            # With options in the body the server does not look at those of the query.
            options["dryRun"] = ["All"]
        try:
            self._send("DELETE", path, {}, options)
        except _GoneUnanswered:
            return True
        except Answered as error:
            if error.status == 404:
                return False
            raise
        return True

    def _send(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any], content_type: str = _JSON
    ) -> dict[str, Any]:
        parameters = {**query, **({"dryRun": "All"} if self.dry_run else {})}
        unsure = False
        for attempt in range(1, _TRIES + 1):
            last = attempt == _TRIES
            try:
                response = self._client.send(method, path, parameters, body, content_type)
            except NoAnswer as error:
                wait = min(0.5 * 2 ** (attempt - 1), _LONGEST_WAIT)
                if last or not self._client.has(wait):
                    raise ClusterError(
                        f"{self._client.server}: {method} was not answered ({error.cause}); whether it was carried "
                        "out is not known: run the same command again"
                    ) from None
                unsure = True
                self._sleep(wait)
                continue
            if response.status in _BUSY and not last and self._client.has(wait_before(response, attempt)):
                unsure = unsure or response.status != 429
                self._sleep(wait_before(response, attempt))
            elif response.status == CONFLICT:
                raise _conflict(response, path, unsure=unsure)
            elif response.status == 404 and unsure and method == "DELETE":
                raise _GoneUnanswered(404, path)
            else:
                return self._client.received(response, path)
        raise AssertionError("unreachable")


def _identity(content: Mapping[str, Any]) -> tuple[object, object]:
    metadata = content.get("metadata")
    return content.get("kind"), metadata.get("name") if isinstance(metadata, Mapping) else None


class _Cause(Struct, frozen=True):
    message: str = ""
    reason: str = ""


class _Details(Struct, frozen=True):
    causes: tuple[_Cause, ...] = ()


class _Refusal(Struct, frozen=True):
    """The parts of a Status that describe a conflict."""

    message: str = ""
    details: _Details = _Details()


class _GoneUnanswered(Answered):
    """The object is gone, and an earlier attempt to delete it got no answer."""


def _conflict(response: Reply, path: str, *, unsure: bool) -> Conflict:
    try:
        answer = json.decode(response.data, type=_Refusal)
    except ValueError:
        answer = _Refusal()
    owners = [cause.message for cause in answer.details.causes if cause.reason == "FieldManagerConflict"]
    said = " ".join((answer.message or "the object has changed").split())
    managers = tuple(dict.fromkeys(owner.partition('"')[2].partition('"')[0] for owner in owners))
    return Conflict(f"{path}: {said}", managers, unsure=unsure)
