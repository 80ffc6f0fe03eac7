"""``can``: which permissions each command needs, which of them are missing, and which role has them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from kubectl_dra.api.neighbour_kinds import NEIGHBOUR_KINDS
from kubectl_dra.cli import claims, devices, drivers, top
from kubectl_dra.cli.command_line import connection_flags
from kubectl_dra.cli.flags import CanFlags
from kubectl_dra.cli.options import ConnectionFlags
from kubectl_dra.cli.snapshot import SAVED_KINDS
from kubectl_dra.cluster.kinds import SCHEDULING_KINDS, is_namespaced_resource, resource_of
from kubectl_dra.cluster.snapshot import KINDS, Permission
from kubectl_dra.command import CURRENT, ClusterFlags, CommandEffect, CommandLine
from kubectl_dra.errors import ClusterError, UndeterminedError, UsageError
from kubectl_dra.exit_codes import EXIT_NO
from kubectl_dra.manifests.yaml_output import yaml_text
from kubectl_dra.report.json_output import SCHEMA_VERSION, json_text, write
from kubectl_dra.safe_output import put
from kubectl_dra.text import amount, did_you_mean, nearest


class Needs(Struct, frozen=True):
    """The permissions of a command: those that it ``always`` needs, and those on which only some answers depend.

    ``role`` is the file of ``examples/rbac`` with a ClusterRole that has them all.
    """

    always: tuple[Permission, ...]
    sometimes: tuple[Permission, ...]
    role: str


def _permissions(verbs: Iterable[str], *kinds: str) -> tuple[Permission, ...]:
    return tuple(Permission(verb, *resource_of(kind)) for kind in kinds for verb in verbs)


READ: Final = "read"
_LIST: Final = ("list",)
_READS: Final = _permissions(_LIST, *KINDS)

_USERS: Final = _permissions(_LIST, "ResourceSlice", "ResourceClaim", "Node")
_SCENE: Final = _permissions(_LIST, "DeviceClass", "ResourceClaimTemplate", "Pod")
_WAITS: Final = _permissions(("watch",), "DeviceTaintRule", "ResourceSlice")
_DRAINS: Final = _permissions(("get", "watch"), "ResourceClaim", "Pod")
_EXPLAINS: Final = Needs(_READS, _permissions(_LIST, *SCHEDULING_KINDS, "Deployment"), READ)
_TAINTS: Final = _permissions(("get", "list", "create", "patch", "delete"), "DeviceTaintRule")
_UNTAINTS: Final = _permissions(("list", "delete"), "DeviceTaintRule")
_CHOOSES: Final = _permissions(_LIST, "DeviceClass", "Pod")

NEEDS: Final[Mapping[str, Needs]] = {
    **dict.fromkeys(("explain", "fit", "share", "ui", "metrics"), _EXPLAINS),
    "snapshot": Needs(_READS, _permissions(_LIST, *SAVED_KINDS), READ),
    "devices": Needs(_permissions(_LIST, *devices.KINDS), _permissions(_LIST, *devices.OF_DRIVERS), READ),
    "claims": Needs(_permissions(_LIST, *claims.KINDS), (), READ),
    "top": Needs(_permissions(_LIST, *top.KINDS), _permissions(_LIST, "Event"), READ),
    "drivers": Needs(_permissions(_LIST, *drivers.KINDS), _permissions(_LIST, *drivers.OF_TAINTS), READ),
    "taint": Needs((*_TAINTS, *_USERS, *_SCENE), (*_WAITS, *_DRAINS), "taint"),
    "untaint": Needs((*_UNTAINTS, *_USERS), (*_WAITS, *_CHOOSES), "untaint"),
}
"""By command; other commands ask no cluster, or what ``explain`` asks."""
NEIGHBOURS: Final[Mapping[Permission, str]] = {Permission("list", *resource_of(kind)): kind for kind in NEIGHBOUR_KINDS}
"""The kinds of other layers, which few clusters serve all of, by the permission to list them."""


FEW: Final = 3
"""Optional permissions that are named unasked."""
ROLES: Final = "https://raw.githubusercontent.com/kubectl-dra/kubectl-dra/main/examples/rbac"


class Access(NamedTuple):
    """What a user may do of what a command needs; ``within`` are missing ones that the one namespace allows."""

    command: str
    needs: Needs
    missing: tuple[Permission, ...]
    within: frozenset[Permission]

    @property
    def allowed(self) -> bool:
        """Whether the command answers as it would for an administrator, but for what some pods need."""
        return not self.required

    @property
    def required(self) -> tuple[Permission, ...]:
        """The missing ones without which the command has no whole answer."""
        return tuple(permission for permission in self.missing if permission in self.needs.always)

    @property
    def optional(self) -> tuple[Permission, ...]:
        """The missing ones on which only some answers depend."""
        return tuple(permission for permission in self.missing if permission not in self.needs.always)


def run(flags: CanFlags, connection: ConnectionFlags) -> int:
    """Prints which permissions are missing; returns the exit code."""
    if flags.command and flags.command not in NEEDS:
        hint = did_you_mean(nearest(flags.command, NEEDS, 1)) or f"it covers {', '.join(NEEDS)}"
        if flags.command in ("lint", "migrate"):
            hint = "of files it asks no cluster, and with --live it reads what snapshot reads: kubectl dra can snapshot"
        raise UsageError(f'can does not cover "{flags.command}"; {hint}')
    if flags.needs:
        return _print_needs(flags)
    try:
        permissions, user, namespace = _asked(flags, connection)
    except ClusterError as error:
        asked = (flags.command,) if flags.command else ()
        without = CommandLine(("kubectl", "dra", "can", *asked, "--needs"), placed=True)
        error.commands = (("What it needs, without a server", without),)
        raise
    code = 0 if all(access.allowed for access in permissions) else EXIT_NO
    if flags.output != "text":
        write(_json(permissions, user, namespace), flags.output, sys.stdout, code)
    else:
        # Whoever grants a permission is somebody else than who lacks it, whom the context may name.
        where = connection_flags(connection, ("kubeconfig", "cluster", "server"))
        _write_text(permissions, user, namespace, where, flags)
    return code


def _print_needs(flags: CanFlags) -> int:
    """Prints the permissions of commands, or as YAML or JSON the role of one; no server is asked."""
    if flags.output != "text":
        if not flags.command:
            how = CommandLine(("kubectl", "dra", "can", "explain", "--needs", "-o", flags.output))
            raise UsageError(f"-o {flags.output} prints the role of one command: name it, as in {how}")
        role = _role(flags.command)
        put(json_text(role) if flags.output == "json" else yaml_text(role, width=110))
        return 0
    from kubectl_dra.report.blocks import shell
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.color import Painter

    out = Painter(color=flags.color)
    out.sentence("No server was asked: this is what commands need, not what you are allowed.")
    alike: dict[int, list[str]] = {}
    for name in (flags.command,) if flags.command else NEEDS:
        alike.setdefault(id(NEEDS[name]), []).append(name)
    for names in alike.values():
        needs = NEEDS[names[0]]
        out.write("")
        out.write((", ".join(names), "bold"))
        for rule in _rules(needs.always):
            out.paragraph(_told(rule), indent="    ", first="  ")
        for rule in _rules(needs.sometimes) if flags.full or flags.command else ():
            out.paragraph(f"for some answers: {_told(rule)}", indent="    ", first="  ")
    if not flags.full and not flags.command:
        out.write("")
        out.sentence("What only some answers need is left out: --full shows it.")
    command = CommandLine(("kubectl", "dra", "can", flags.command or "explain", "--needs", "-o", "yaml"))
    write_blocks(out, [shell((command,), CURRENT, f"Role of {flags.command or 'explain'}")])
    return 0


def _told(rule: Mapping[str, Sequence[str]]) -> str:
    """A rule in words: verbs, resources, and their API group unless that is the core one."""
    (group,) = rule["apiGroups"]
    return f"{', '.join(rule['verbs'])}: {', '.join(rule['resources'])}{f' ({group})' if group else ''}"


def _rules(permissions: Iterable[Permission]) -> list[dict[str, list[str]]]:
    """The permissions as rules of RBAC, resources of one group with the same verbs together."""
    verbs: dict[tuple[str, str], dict[str, None]] = {}
    for permission in permissions:
        verbs.setdefault((permission.group, permission.resource), {})[permission.verb] = None
    rules: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), of_resource in verbs.items():
        rules.setdefault((group, tuple(of_resource)), []).append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": [*names]} for (group, names), resources in rules.items()
    ]


def _role(command: str) -> dict[str, Any]:
    """The ClusterRole with all that a command needs."""
    needs = NEEDS[command]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"kubectl-dra-{command}"},
        "rules": _rules((*needs.always, *needs.sometimes)),
    }


def _asked(flags: CanFlags, connection: ConnectionFlags) -> tuple[list[Access], str, str]:
    """Each command with what is missing, the user's name, and the namespace that was asked about besides."""
    from kubectl_dra.cli.live import api_server
    from kubectl_dra.cluster import discovery

    cluster = api_server(connection, flags.namespace)
    names = (flags.command,) if flags.command else tuple(NEEDS)
    wanted = [
        *dict.fromkeys(permission for name in names for permission in (*NEEDS[name].always, *NEEDS[name].sometimes))
    ]
    try:
        answers = discovery.allowed(cluster.client, wanted)
        missing = [permission for permission, answer in zip(wanted, answers, strict=True) if not answer]
        # Nobody needs a permission on a layer that the cluster does not run.
        missing = [need for need in missing if (kind := NEIGHBOURS.get(need)) is None or cluster.unserved(kind) is None]
        local = [permission for permission in missing if is_namespaced_resource(permission.resource)]
        within = discovery.allowed(cluster.client, local, cluster.namespace)
        user = (discovery.user(cluster.client) or connection.as_user) if missing else ""
        if flags.namespace:
            cluster.read_snapshot(("Namespace",)).require_namespace(flags.namespace)
    except ClusterError as error:
        if error.status in (403, 404):
            raise UndeterminedError(f"the server does not say what you may do: {error}") from None
        raise
    there = frozenset(permission for permission, answer in zip(local, within, strict=True) if answer)
    permissions = []
    for name in names:
        needs = NEEDS[name]
        lacks = tuple(permission for permission in (*needs.always, *needs.sometimes) if permission in missing)
        permissions.append(Access(name, needs, lacks, there))
    return permissions, user, cluster.namespace


def _write_text(permissions: Sequence[Access], user: str, namespace: str, where: ClusterFlags, asked: CanFlags) -> None:
    from kubectl_dra.report.blocks import shell
    from kubectl_dra.report.blocks_text import write_blocks
    from kubectl_dra.report.color import Painter

    out = Painter(color=asked.color)
    if len(permissions) > 1:
        _write_table(out, permissions, asked.full)
    for access in permissions if len(permissions) == 1 else ():
        out.paragraph(_sentence(access), style="bold")
        for line in _lines(access, asked.full, namespace):
            out.write(f"  {line}")
    # Who may taint can end every pod with a device: that role only for who asks about it.
    lacking = [
        access for access in permissions if access.missing and (len(permissions) == 1 or access.needs.role == READ)
    ]
    by_itself = [access.command for access in permissions if access.missing and access not in lacking]
    roles = dict.fromkeys(access.needs.role for access in lacking)
    if roles:
        out.write("")
        what = "what only reads" if by_itself else "it"
        out.paragraph(f"An administrator allows {what} with these commands, which need rights of their own:")
        write_blocks(out, [shell((command,), where) for role in roles for command in commands(role, user)])
        if not user:
            bound = f"kubectl-dra-{next(iter(roles))}"
            words = ("kubectl", "create", "clusterrolebinding", bound, f"--clusterrole={bound}", "--user=NAME")
            binding = CommandLine(words)
            out.paragraph(f"Nobody has the role yet: the server does not say who asks. With the name: {binding}")
    if by_itself:
        out.write("")
        them = "ask about it by itself" if len(by_itself) == 1 else "ask about each by itself"
        out.paragraph(f"For {' and '.join(by_itself)}, which can end pods, {them}:")
        asks = (CommandLine(("kubectl", "dra", "can", command)) for command in by_itself)
        write_blocks(out, [shell((command,), where) for command in asks])


def _lines(access: Access, full: bool, namespace: str = "") -> Iterator[str]:
    """The missing permissions, the required ones first; of more optional ones than a few only how many."""
    shown = full or len(access.optional) <= FEW
    for permission in (*access.required, *(access.optional if shown else ())):
        about = ["optional"] if permission in access.optional else []
        about += [f"allowed in namespace {namespace}"] if namespace and permission in access.within else []
        yield f"{permission} ({', '.join(about)})" if about else str(permission)
    if not shown:
        yield f"{len(access.optional)} optional: --full"


def _sentence(access: Access) -> str:
    if not access.missing:
        return f"yes: nothing that {access.command} needs is missing"
    if access.allowed:
        return f"yes, but some answers are undetermined without {amount(len(access.missing), 'further permission')}:"
    lacks = f"no: {access.command} lacks {amount(len(access.required), 'permission')}"
    return f"{lacks}, and {len(access.optional):,} optional for some answers:" if access.optional else f"{lacks}:"


def _write_table(out: Any, permissions: Sequence[Access], full: bool) -> None:
    from kubectl_dra.report.table import aligned

    rows = [("COMMAND", "ALLOWED", "MISSING")]
    first: dict[tuple[str, ...], str] = {}
    for access in permissions:
        word = "no" if not access.allowed else "partly" if access.missing else "yes"
        lines = tuple(_lines(access, full))
        same = first.setdefault(lines, access.command)
        cells = lines if same == access.command or len(lines) < 2 else (f"as {same}",)
        rows.append((access.command, word, cells[0] if cells else "-"))
        rows += [("", "", cell) for cell in cells[1:]]
    for line in aligned(rows):
        out.write(line)


def commands(role: str, user: str) -> Iterator[CommandLine]:
    """The commands that make the role and give it to the user, where the user's name is known."""
    yield CommandLine(("kubectl", "apply", "-f", f"{ROLES}/{role}.yaml"), CommandEffect.WRITES)
    if user:
        service = user.removeprefix("system:serviceaccount:")
        subject = f"--serviceaccount={service}" if service != user else f"--user={user}"
        name = f"kubectl-dra-{role}"
        words = ("kubectl", "create", "clusterrolebinding", f"{name}-{_word(user)}", f"--clusterrole={name}", subject)
        yield CommandLine(words, CommandEffect.WRITES)


def _word(user: str) -> str:
    """The name of a user as the end of an object's name."""
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in user.lower())
    return kept.strip("-")[:40].strip("-") or "user"


def _json(permissions: Sequence[Access], user: str, namespace: str) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "Access",
        "user": user,
        "items": [
            {
                "command": access.command,
                "allowed": access.allowed,
                "role": f"kubectl-dra-{access.needs.role}",
                "missing": [
                    {
                        "verb": permission.verb,
                        "resource": permission.resource,
                        "group": permission.group,
                        "always": permission in access.needs.always,
                        "allowedIn": [namespace] if permission in access.within else [],
                    }
                    for permission in access.missing
                ],
            }
            for access in permissions
        ],
    }
