"""What a proof in a JSON answer says, in the words of the text, so that tests may expect it in one line."""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]
_WITH = {
    "the-change": "then",
    "without-the-term": "without the term",
    "without-the-request": 'without request "{}"',
    "a-claim-for-each-request": "with a claim for each request",
}
_OTHERS = {
    "set-aside": " (other requests left aside)",
    "changed-as-well": " (with the fixes of the other requests made as well)",
}


def device_path(entry: JSON) -> str:
    """A device as ``driver/pool/device``."""
    return f"{entry['driver']}/{entry['pool']}/{entry['device']}"


def lands_on(proof: JSON) -> str:
    """The node, or "the new node"."""
    return str(proof["node"]) if "node" in proof else "the new node"


def proof_of(cause: JSON) -> str:
    """The proof of a cause's fix; empty without one."""
    if "proof" not in cause["fix"]:
        return ""
    proof = cause["fix"]["proof"]
    text = f"{_WITH[proof['with']].format(proof.get('request', ''))} it fits on {lands_on(proof)}"
    devices = ", ".join(device_path(entry) for entry in proof.get("devices", ()))
    return text + (f": {devices}" if devices else "") + _OTHERS.get(proof.get("otherRequests", ""), "")


def way_of(way: JSON) -> str:
    """A way out: its changes, and where it fits then."""
    return f"{' and '.join(change['text'] for change in way['changes'])}: then it fits on {lands_on(way['proof'])}"
