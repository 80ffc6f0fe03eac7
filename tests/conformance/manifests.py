"""Compare verdicts on manifests with what a real API server answered to a dry-run create.

    python -m tests.conformance manifests FILE...

Each disagreement is printed. The last lines are ``pairs N of M``, rejected manifests with the same set of
(field, reason) pairs, and ``agree N of M``, manifests that both accept or both reject.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kubectl_dra.admission.server.model import ServerVerdict
from kubectl_dra.admission.server.verdict import check, check_update
from kubectl_dra.api.releases import Release, parse_release
from tools.recorder.recorded import gates, lines

RELEASE = "1.36.2"
"""Of lines that do not say theirs."""

NAMESPACES: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "admin": {"resource.kubernetes.io/admin-access": "true"},
}
"""The namespaces of the recorded server, with their labels."""

Pairs = frozenset[tuple[str, str]]


def our_pairs(verdict: ServerVerdict) -> Pairs:
    """The (field, reason) pairs we would answer: only validation errors have them."""
    if verdict.code != 422:
        return frozenset()
    return frozenset((one.field, one.reason) for one in verdict.violations)


def recorded_pairs(expected: Mapping[str, Any]) -> Pairs:
    """The (field, reason) pairs the server answered."""
    return frozenset(
        (cause.get("field") or "", (cause.get("reason") or "").removeprefix("FieldValue"))
        for cause in expected.get("causes") or ()
    )


def compared(case: Mapping[str, Any]) -> Iterator[str]:
    """How closely one answer is compared."""
    yield "accepted" if case["expect"]["accepted"] else "rejected: the HTTP code, and every field with its reason"


def answered(case: Mapping[str, Any]) -> ServerVerdict:
    """What we answer in place of the server of the line's release, with its gates."""
    release = parse_release(case.get("release", RELEASE))
    features = gates(release, case.get("features", []))
    verdict = _verdict(case, release, features)
    return ServerVerdict(False, 404) if verdict is None else verdict


def _verdict(case: Mapping[str, Any], release: Release, features: frozenset[str]) -> ServerVerdict | None:
    if "old" not in case:
        return check(case["manifest"], release=release, features=features, namespaces=NAMESPACES)
    status = case.get("subresource") == "status"
    return check_update(
        case["manifest"], case["old"], status=status, release=release, features=features, namespaces=NAMESPACES
    )


def run(files: list[Path], options: Any = None) -> int:
    """Prints every disagreement and the totals; 0 if all verdicts, and all pairs of what is rejected, agree."""
    total = agree = rejected = same = 0
    for path in files:
        for case in lines(path):
            expected = case["expect"]
            ours = answered(case)
            total += 1
            agreed = ours.accepted == expected["accepted"]
            agree += agreed
            paired = (ours.code, our_pairs(ours)) == (expected["code"], recorded_pairs(expected))
            if not expected["accepted"]:
                rejected += 1
                same += paired
            if not agreed or not paired:
                print(_disagreement(case, ours))
    print(f"pairs {same} of {rejected}")
    print(f"agree {agree} of {total}")
    return 0 if agree == total and same == rejected else 1


def _disagreement(case: Mapping[str, Any], ours: ServerVerdict) -> str:
    expected = case["expect"]
    theirs, mine = recorded_pairs(expected), our_pairs(ours)
    manifest = case["manifest"]
    out = [
        f"{case['id']} {manifest['apiVersion']} {manifest['kind']} ({case['change']}): "
        f"expected {expected['code']}, got {ours.code}"
    ]
    out += [f"  only expected: {field} {reason}" for field, reason in sorted(theirs - mine)]
    out += [f"  only ours: {field} {reason}" for field, reason in sorted(mine - theirs)]
    if expected["code"] != ours.code:
        out.append(f"  expected: {expected.get('message', '')[:300]}")
        out += [f"  ours: {one.field} {one.reason} ({one.rule}): {one.message}" for one in ours.violations[:4]]
    return "\n".join(out)
