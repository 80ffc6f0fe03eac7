"""``version``: describes this program and what it models, and asks the server for its version."""

from __future__ import annotations

import platform
import sys
from typing import Any, Final

from kubectl_dra import __version__
from kubectl_dra.api.releases import (
    EXPLAINED,
    LIFECYCLES,
    MODELLED,
    Release,
    gate_default,
    gate_locked,
    known_gates,
    parse_release,
)
from kubectl_dra.cli.flags import VersionFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.errors import ClusterError
from kubectl_dra.report.json_output import SCHEMA_VERSION, write

UNMODELLED: Final = frozenset(("DRANodeAllocatableResources",))
"""Gates whose features ``explain`` does not model in some release: their use there makes the answer undetermined.

What devices take of their node is modelled as 1.37 has it, not as 1.36 had it.
"""
_STATES: Final = {"on": "on", "off": "off", "locked": "on*", "unknown": "-"}


def run(flags: VersionFlags, connection: ConnectionFlags) -> int:
    """Prints; returns the exit code. Raises UsageError: a malformed ``--request-timeout``."""
    result = describe(None if flags.client else _server(connection))
    if flags.output == "text":
        _write_text(result, flags.color, full=flags.full)
    else:
        write(result, flags.output, sys.stdout, 0)
    return 0


def describe(server: dict[str, Any] | None) -> dict[str, Any]:
    """The result in the shape of ``schemas/version.json``; ``server`` is None if none was asked."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Version",
        "client": {
            "version": __version__,
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "platform": f"{platform.system().lower()}/{platform.machine().lower()}",
        },
        "models": {
            "lint": {"oldest": str(MODELLED.oldest), "newest": str(MODELLED.newest)},
            "explain": {"oldest": str(EXPLAINED.oldest), "newest": str(EXPLAINED.newest)},
        },
        "releases": [
            {
                "release": str(release),
                "kinds": _kinds(release),
                "gates": {gate: state for gate in known_gates() if (state := _state(gate, release)) != "unknown"},
            }
            for release in MODELLED
        ],
        "unmodelled": sorted(UNMODELLED),
        "server": server,
    }


def _kinds(release: Release) -> dict[str, dict[str, str]]:
    """Maps kind to version to ``default`` or ``asked for`` (with ``--runtime-config``)."""
    out: dict[str, dict[str, str]] = {}
    for life in LIFECYCLES:
        if life.exists(release):
            how = "default" if life.served_by_default(release) else "runtimeConfig"
            out.setdefault(life.kind, {})[life.version] = how
    return dict(sorted(out.items()))


def _state(gate: str, release: Release) -> str:
    default = gate_default(gate, release)
    if default is None:
        return "unknown"
    if gate_locked(gate, release):
        return "locked"
    return "on" if default else "off"


def _server(connection: ConnectionFlags) -> dict[str, Any]:
    """What the server says about itself, or why it does not."""
    from kubectl_dra.cli.live import api_server

    try:
        cluster = api_server(connection, sleep=lambda pause: None)
    except ClusterError as error:
        return {"failure": str(error)}
    out: dict[str, Any] = {"context": cluster.context, "address": cluster.server}
    try:
        answer = cluster.client.get("/version")
        out["version"] = str(answer.get("gitVersion") or "")
        out["versions"] = dict(sorted(cluster.dra_versions().items()))
    except ClusterError as error:
        out["failure"] = str(error)
    return out


def _write_text(result: dict[str, Any], color: str, *, full: bool) -> None:
    from kubectl_dra.report.color import Painter

    out = Painter(color=color)
    client, models = result["client"], result["models"]
    modelled = [f"{command} {span['oldest']} to {span['newest']}" for command, span in models.items()]
    rows = [
        ("kubectl-dra", client["version"]),
        (client["implementation"].replace("CPython", "Python"), f"{client['python']} on {client['platform']}"),
        ("Kubernetes", f"modelled: {', '.join(modelled)}"),
    ]
    for title, text in rows:
        out.paragraph(text, " " * 14, title.ljust(14))
    _write_server(out, result["server"])
    if full:
        _write_releases(out, result)
    else:
        out.write("Kinds and feature gates of each release: kubectl dra version --client --full")


def _write_releases(out: Any, result: dict[str, Any]) -> None:
    """Write which kinds and gates each release has that ``explain`` models."""
    releases = [row for row in result["releases"] if parse_release(row["release"]) in EXPLAINED]
    out.write("")
    kinds = sorted({kind for row in releases for kind in row["kinds"]})
    table = [("RESOURCE.K8S.IO", *(row["release"] for row in releases))]
    table += [(kind, *(_served(row["kinds"].get(kind, {})) for row in releases)) for kind in kinds]
    _write_table(out, table)
    out.write("")
    gates = [gate for gate in known_gates() if _state(gate, EXPLAINED.newest) != "unknown"]
    table = [("FEATURE GATE", *(row["release"] for row in releases))]
    for gate in gates:
        mark = " (not for 1.36)" if gate in UNMODELLED else ""
        table.append((gate + mark, *(_STATES[row["gates"].get(gate, "unknown")] for row in releases)))
    _write_table(out, table)
    out.write("")
    out.paragraph(
        "A kind: the newest version served by default, (in brackets) one that has to be switched on. A gate: on or "
        "off by default, on* cannot be switched off, - is not known to the release. -o json has every version and "
        "release."
    )


def _write_server(out: Any, server: dict[str, Any] | None) -> None:
    if server is None:
        return
    if "version" in server:
        where = server["address"] + (f", context {server['context']}" if server["context"] else "")
        version = server["version"] or "does not say its version"
        out.paragraph(f"{version} ({where})", " " * 14, "Server        ")
        versions = sorted(set(server.get("versions", {}).values()))
        out.write(f"              serves resource.k8s.io {', '.join(versions) or 'not at all'}")
    if "failure" in server:
        out.paragraph(server["failure"], " " * 14, "Server        ")


def _served(versions: dict[str, str]) -> str:
    for wanted, form in (("default", "{}"), ("runtimeConfig", "({})")):
        for version, how in versions.items():
            if how == wanted:
                return form.format(version)
    return "-"


def _write_table(out: Any, rows: list[tuple[str, ...]]) -> None:
    from kubectl_dra.report.blocks import TableBlock
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.table import narrowed

    table, omitted = narrowed(rows, out.limit, rows[0][1:], rows[0][:1])
    write_blocks(out, [TableBlock(table, omitted=omitted)])
