"""Reads kubeconfig files into typed entries, as strictly as kubectl does.

Types are those of client-go's ``clientcmd/api/v1``: every entry of a file must have them, also those that nobody uses.
kubectl ignores keys that it does not know; here such a key is an error where its entry is used, because a misspelt
``insecure-skip-tls-verify`` or ``as`` changes who asks whom. No message has the value of a field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from msgspec import Struct, ValidationError, convert, field

from kubectl_dra.errors import ClusterError, InputError
from kubectl_dra.process import special
from kubectl_dra.text import nearest

_WORD: Final = re.compile("[A-Za-z_-]{1,24}")
_LARGEST: Final = 16 << 20
_V1BETA1: Final = "client.authentication.k8s.io/v1beta1"


class NamedValue(Struct, frozen=True):
    """A variable of an exec plugin."""

    name: str = ""
    value: str = ""


class NamedExtension(Struct, frozen=True):
    """Data of other programs; one of a cluster may be meant for the exec plugin."""

    name: str = ""
    extension: Any = None


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """Address of a cluster, and the settings of connections to it."""

    files: ClassVar = ("certificate_authority",)

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: bytes = b""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[NamedExtension, ...] = ()


class ExecPlugin(Struct, frozen=True, rename="camel"):
    """A program that gives credentials."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[NamedValue, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProvider(Struct, frozen=True):
    """The older kind of plugin, such as ``oidc``."""

    name: str = ""
    config: dict[str, str] = {}


class UserEntry(Struct, frozen=True, rename="kebab"):
    """A user of the kubeconfig, with its credentials."""

    files: ClassVar = ("client_certificate", "client_key", "token_file")

    client_certificate: str = ""
    client_certificate_data: bytes = b""
    client_key: str = ""
    client_key_data: bytes = b""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    as_user: str = field(default="", name="as")
    as_uid: str = ""
    as_groups: tuple[str, ...] = ()
    as_user_extra: dict[str, tuple[str, ...]] = {}
    username: str = ""
    password: str = ""
    auth_provider: AuthProvider | None = None
    exec: ExecPlugin | None = None
    extensions: tuple[NamedExtension, ...] = ()


class ContextEntry(Struct, frozen=True):
    """A cluster, a user and a namespace."""

    files: ClassVar = ()

    cluster: str = ""
    user: str = ""
    namespace: str = ""
    extensions: tuple[NamedExtension, ...] = ()


E = TypeVar("E", ClusterEntry, UserEntry, ContextEntry)


class Used(Struct, frozen=True):
    """What a file says of one name: the entry, and why it cannot be used although kubectl might."""

    entry: Any
    problem: str = ""


class Kubeconfig(Struct, frozen=True):
    """The entries of all files, by name."""

    current_context: str = ""
    clusters: Mapping[str, Used] = {}
    users: Mapping[str, Used] = {}
    contexts: Mapping[str, Used] = {}

    def entry(self, kind: type[E], name: str) -> E:
        """The entry of that name. Raises ClusterError: there is none, or it cannot be read."""
        section = _SECTIONS[kind]
        entries: Mapping[str, Used] = getattr(self, section)
        if name not in entries:
            near = nearest(name, entries) or sorted(entries)[:3]
            none = "; the kubeconfig has no contexts" if kind is ContextEntry else ""
            hint = f"; there is {', '.join(near)}" if near else none
            raise ClusterError(f'the kubeconfig has no {section.removesuffix("s")} "{name}"{hint}')
        if problem := entries[name].problem:
            raise ClusterError(problem)
        content: E = entries[name].entry
        return content


_SECTIONS: Final[dict[type, str]] = {ClusterEntry: "clusters", UserEntry: "users", ContextEntry: "contexts"}


def merged(paths: Sequence[str]) -> Kubeconfig:
    """The entries of the files. The first file that has a name, or a current context, wins.

    Raises ClusterError: a file that cannot be read, or that kubectl would not accept.
    """
    files = [_read(path) for path in paths]
    whole: dict[str, dict[str, Used]] = {section: {} for section in _SECTIONS.values()}
    for file in reversed(files):
        for section, entries in whole.items():
            entries |= getattr(file, section)
    current = next((file.current_context for file in files if file.current_context), "")
    return Kubeconfig(current, **whole)


def _read(path: str) -> Kubeconfig:
    raw = content_of(path)
    api_version, kind = raw.get("apiVersion", ""), raw.get("kind", "")
    if api_version not in ("", "v1") or kind not in ("", "Config"):
        raise ClusterError(f"{path}: not a kubeconfig: its apiVersion and kind are not v1 and Config")
    current = raw.get("current-context", "")
    if not isinstance(current, str):
        raise ClusterError(f"{path}: the kubeconfig's current-context must be a text")
    if not isinstance(raw.get("preferences", {}), dict):
        raise ClusterError(f"{path}: the kubeconfig's preferences must be an object")
    try:
        convert(raw.get("extensions", ()), tuple[NamedExtension, ...])
    except ValidationError as error:
        raise ClusterError(f"{path}: extensions of the kubeconfig: {error}") from None
    sections = {name: _section(path, raw.get(name), name, kind) for kind, name in _SECTIONS.items()}
    return Kubeconfig(current, **sections)


def _section(path: str, raw: Any, section: str, kind: type[Any]) -> dict[str, Used]:
    if not isinstance(raw, list | None):
        raise ClusterError(f"{path}: the kubeconfig's {section} must be a list")
    out: dict[str, Used] = {}
    inner = section.removesuffix("s")
    for index, named in enumerate(raw or ()):
        place = f"{path}: {section}[{index}]"
        if not isinstance(named, dict) or not isinstance(name := named.get("name"), str):
            raise ClusterError(f"{place}: an entry of the kubeconfig's {section} has no name")
        content = named.get(inner, {})
        if not isinstance(content, dict):
            raise ClusterError(f"{place}: {section} entry {name} of the kubeconfig is broken")
        if name in out:
            raise ClusterError(f'{place}: the kubeconfig has {inner} "{name}" twice')
        try:
            section_entry = convert({key: _base64(key, value) for key, value in content.items()}, kind)
        except ValidationError as error:
            # The message has types and the path, and no values.
            raise ClusterError(f'{place}, {inner} "{name}" of the kubeconfig: {error}') from None
        out[name] = Used(_absolute(section_entry, Path(path).parent), _unknown(place, name, content, kind))
    return out


def _base64(key: str, value: Any) -> Any:
    # A block of YAML may have line ends, which Go's decoder skips.
    return re.sub("[\r\n]", "", value) if key.endswith("-data") and isinstance(value, str) else value


def _unknown(place: str, name: str, content: Mapping[str, Any], kind: type[Any]) -> str:
    """The sentence about an unknown key; empty if all are known."""
    exec_keys = content.get("exec") if kind is UserEntry else None
    known = set(kind.__struct_encode_fields__)
    odd = sorted(set(content) - known)
    if not odd and isinstance(exec_keys, dict):
        known = set(ExecPlugin.__struct_encode_fields__)
        odd = sorted(set(exec_keys) - known)
    if not odd:
        return ""
    near = nearest(odd[0], known)
    hint = f"; is {near[0]} meant?" if near else ""
    section = _SECTIONS[kind].removesuffix("s")
    # Whatever stands in the wrong place may be a secret.
    key = f' "{odd[0]}"' if _WORD.fullmatch(odd[0]) else ""
    return f'{place}, {section} "{name}" of the kubeconfig: unknown key{key}{hint}'


def _absolute(section_entry: Any, base: Path) -> Any:
    """The entry with paths that count from the directory of its file, and with kubectl's defaults."""
    from msgspec.structs import replace

    files = {name: getattr(section_entry, name) for name in section_entry.files}
    changes: dict[str, Any] = {name: str((base / value).absolute()) for name, value in files.items() if value}
    plugin: ExecPlugin | None = getattr(section_entry, "exec", None)
    if plugin is not None:
        if "/" in plugin.command:
            plugin = replace(plugin, command=str((base / plugin.command).absolute()))
        if not plugin.interactive_mode and plugin.api_version == _V1BETA1:
            plugin = replace(plugin, interactive_mode="IfAvailable")
        changes["exec"] = plugin
    return replace(section_entry, **changes)


# --- the object of a file ------------------------------------------------------------------------


def content_of(path: str) -> dict[str, Any]:
    """What a file says, without nulls. Raises ClusterError."""
    from kubectl_dra.cluster.contents import beginning
    from kubectl_dra.manifests.documents import NotAnObject, Skipped, each_document
    from kubectl_dra.manifests.source import decode

    try:
        if special(path) == "a socket":
            raise ClusterError(f"{path}: is a socket, not a kubeconfig")
        data = beginning(path, _LARGEST + 1)
        if len(data) > _LARGEST:
            raise ClusterError(f"{path}: has more than {_LARGEST >> 20} MB, which no kubeconfig has")
        first = next(each_document(decode(data, path)), None)
    except InputError as error:
        raise ClusterError(f"{error} (in the kubeconfig)") from None
    except OSError as error:
        raise ClusterError(f"{path}: the kubeconfig cannot be read: {error.strerror or error}") from None
    if first is None:
        return {}
    if isinstance(first, Skipped):
        if isinstance(first.error, NotAnObject):
            raise ClusterError(f"{path}: not a kubeconfig")
        raise ClusterError(f"{first.error} (in the kubeconfig)")
    content: dict[str, Any] = _without_nulls(first.object, path)
    return content


def _without_nulls(value: Any, path: str) -> Any:
    """A value without its nulls, which are zero values to kubectl. Raises ClusterError: a text that UTF-8 has not."""
    if isinstance(value, dict):
        pairs = ((key, inner) for key, inner in value.items() if inner is not None)
        return {_without_nulls(key, path): _without_nulls(inner, path) for key, inner in pairs}
    if isinstance(value, list):
        return [_without_nulls(inner, path) for inner in value]
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= mark <= "\udfff" for mark in value):
        # No header, file name or address can hold one; kubectl refuses the file as well.
        raise ClusterError(f"{path}: the kubeconfig is not valid YAML: an escape of half a character")
    return value
