"""What was not read is never called absent.

Each kind is hidden in turn from a cluster. A sentence of absence that is printed then is one that is printed of the
whole cluster as well, and so is true; or it says that it is about what was read, or that the answer is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_dra.cluster.snapshot import KINDS
from tests.ran import ran
from tests.unread.test_unread import saved

ROOT = Path(__file__).parents[2]
CLUSTERS = {
    "drivers": ROOT / "docs" / "samples" / "drivers.yaml",
    "held": ROOT / "examples" / "explain" / "all-held" / "cluster.yaml",
}
COMMANDS = (
    *(["devices"], ["devices", "--full"], ["devices", "--by", "class"], ["devices", "--state", "free"]),
    *(["top", by] for by in ("nodes", "classes", "namespaces", "owners", "claims")),
    *(["claims"], ["drivers"], ["taint", "--list"], ["explain"], ["explain", "-A"]),
)
ABSENT = re.compile(
    r"(?i)\b(no|none|nobody|nothing|without|0) [^.;:]*"
    r"|\b(does not|do not|is not|are not) (exist|published|there)\b|\bnot (exist|published)\b|\bgone\b"
)
NOUNS = {
    "ResourceSlice": "device|slice|publish",
    "DeviceClass": "class",
    "ResourceClaim": "claim|holds|held",
    "ResourceClaimTemplate": "template",
    "DeviceTaintRule": "taint|rule",
    "Pod": r"pods?\b|nobody|owner|uses|waits",
    "Node": "node",
    "Namespace": "namespace",
    "ResourceQuota": "quota",
    "Event": "event",
}
"""Words by which a sentence is about a kind."""
OPEN = re.compile(r"(?i)\bread\b|\bseen\b|\bunknown\b|\bundetermined\b|--complete")


def objects(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.load(CLUSTERS[name].read_text(), Loader=yaml.CSafeLoader)["items"]
    return loaded


def printed(words: Sequence[str]) -> list[str]:
    """What a command prints on standard output, by sentence and cell."""
    _, out, errors = ran(*words)
    assert "a defect of" not in errors
    joined = re.sub(r"\n(?! {0,2}\S* {2})(?=\S)", " ", out)
    parts = (part for line in joined.splitlines() for part in re.split(r"(?<=[.;:]) | {2,}|; ", line))
    # The same words may end a sentence, or come before a semicolon.
    return [part.strip().rstrip(".") for part in parts]


def absences(words: Sequence[str], kind: str) -> Iterator[str]:
    """The sentences that say that something of a kind is not there, as if all of it had been read."""
    about = re.compile(f"(?i){NOUNS[kind]}")
    for part in printed(words):
        if ABSENT.search(part) and about.search(part) and not OPEN.search(part):
            yield part


def commands(items: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The commands about all, and about each pod, claim and node."""
    about = {"Pod": "pod", "ResourceClaim": "resourceclaim", "Node": "node"}
    found = [list(one) for one in COMMANDS]
    for item in items:
        kind, meta = about.get(item["kind"], ""), item["metadata"]
        if not kind:
            continue
        space = ["-n", meta["namespace"]] if "namespace" in meta else []
        found.append(["explain", f"{kind}/{meta['name']}", *space])
        if kind == "node":
            found.append(["drivers", "--node", meta["name"]])
            found.append(["drivers", "--node", meta["name"], "--drain-check"])
    return found


@pytest.mark.parametrize("hidden", KINDS)
@pytest.mark.parametrize("name", CLUSTERS)
def test_nothing_unread_is_called_absent(name: str, hidden: str, tmp_path: Path) -> None:
    items = objects(name)
    path = tmp_path / "cluster.json"
    for words in commands(items):
        true = set(absences([*words, *saved(path, items)], hidden))
        found = [part for part in absences([*words, *saved(path, items, hidden)], hidden) if part not in true]
        assert found == [], words


ASKED_BY_NAME = {
    "Pod": (
        ["taint", "--pod", "x", "a:NoSchedule"],
        ["explain", "pod/x"],
        ["explain", "deploy/x"],
        ["explain", "-l", "a=x"],
        ["explain", "x"],
    ),
    "ResourceClaim": (["explain", "claim/x"], ["explain", "x"], ["taint", "--claim", "x", "a:NoSchedule"]),
    "ResourceClaimTemplate": (["explain", "template/x"],),
    "ResourceSlice": (["explain", "device/x/y"], ["devices", "x/y"], ["taint", "x/y", "a:NoSchedule"]),
    "DeviceClass": (["explain", "class/x"], ["devices", "--class", "x"]),
    "Node": (["explain", "node/x"], ["devices", "x"]),
}
"""Names that nothing of a kind has in the cluster."""


@pytest.mark.parametrize(
    ("hidden", "words"), [(kind, words) for kind, asked in ASKED_BY_NAME.items() for words in asked]
)
def test_a_name_is_not_called_absent_either(hidden: str, words: list[str], tmp_path: Path) -> None:
    flags = ["--dry-run=client"] if words[0] == "taint" else []
    items = objects("held")
    for kinds, code in (((), 2), ((hidden,), 3)):
        ended, _, errors = ran(*words, *flags, *saved(tmp_path / "cluster.json", items, *kinds))
        assert ended == code, errors
        assert bool(kinds) == bool(OPEN.search(errors)), errors
