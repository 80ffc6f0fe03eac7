"""Kubeconfigs and flags: each key, each wrong type, and the combinations that decide who asks whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

CLUSTER: Final = {"server": "https://@https@", "certificate-authority-data": "@ca-data@"}
PLAIN: Final = {"server": "http://@http@"}
CLIENT: Final = {"client-certificate-data": "@client-data@", "client-key-data": "@client-key-data@"}
TOKEN: Final = {"token": "secret-of-the-token"}
BASIC: Final = {"username": "jane", "password": "secret-of-jane"}
_V1: Final = "client.authentication.k8s.io/v1"
PLUGIN: Final = {"apiVersion": _V1, "command": "./plugin", "interactiveMode": "Never"}


class Case(Struct, frozen=True):
    """``files``: name to a kubeconfig, an object or a text; --kubeconfig names ``config`` unless KUBECONFIG is set.

    ``beside``: further files. ``flags``: kubectl's, without dashes. ``pod``: the files of a service account.
    """

    name: str
    files: Mapping[str, Any]
    flags: Mapping[str, Any] = {}
    variables: Mapping[str, str] = {}
    beside: Mapping[str, str] = {}
    pod: Mapping[str, str] = {}


def config(user: Any, cluster: Any = CLUSTER, /, **context: Any) -> dict[str, Any]:
    """A kubeconfig with one of each."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", **context}}],
    }


def one(name: str, user: Any, cluster: Any = CLUSTER, **more: Any) -> Case:
    """A case with one file."""
    return Case(name, {"config": config(user, cluster)}, **more)


def cases() -> list[Case]:
    """All of them; names are unique."""
    out = [case for part in subjects().values() for case in part]
    assert len({case.name for case in out}) == len(out)
    return out


def subjects() -> dict[str, list[Case]]:
    """The cases by what they are about."""
    return {
        "types of values, keys, names": [*_types()],
        "tokens, passwords, certificates": [*_authentication()],
        "plain HTTP": [*_plain_http()],
        "TLS": [*_tls()],
        "impersonation": [*_impersonation()],
        "credential plugins": [*_plugins()],
        "proxies": [*_proxies()],
        "NO_PROXY": [*_spared()],
        "several files, relative paths": [*_files()],
        "flags": [*_flags()],
        "in a pod": [*_pods()],
    }


# --- each key, each wrong type -------------------------------------------------------------------

_USER: Final[Mapping[str, Any]] = {
    "client-certificate": "client.pem", "client-certificate-data": "@client-data@", "client-key": "client-key.pem",
    "client-key-data": "@client-key-data@", "token": "t", "tokenFile": "token", "as": "jane", "as-uid": "7",
    "as-groups": ["dev"], "as-user-extra": {"scopes": ["view"]}, "username": "jane", "password": "p",
    "auth-provider": {"name": "oidc"}, "exec": PLUGIN, "extensions": [],
}  # fmt: skip
_CLUSTER: Final[Mapping[str, Any]] = {
    "server": "https://@https@", "tls-server-name": "named.test", "insecure-skip-tls-verify": False,
    "certificate-authority": "ca.pem", "certificate-authority-data": "@ca-data@", "proxy-url": "http://@proxy@",
    "disable-compression": True, "extensions": [],
}  # fmt: skip
_EXEC: Final[Mapping[str, Any]] = {
    "command": "./plugin", "args": [], "env": [], "apiVersion": _V1, "installHint": "x", "provideClusterInfo": False,
    "interactiveMode": "Never",
}  # fmt: skip
_WRONG: Final[Mapping[str, Any]] = {
    "number": 5,
    "text": "no",
    "list": ["x"],
    "object": {"a": "b"},
    "null": None,
    "yes": True,
}


def _types() -> Iterator[Case]:
    for key in _USER:
        for word, value in _WRONG.items():
            yield one(f"user {key}: {word}", {**TOKEN, key: value})
    for key in _CLUSTER:
        for word, value in _WRONG.items():
            yield one(f"cluster {key}: {word}", TOKEN, {**CLUSTER, key: value})
    for key in _EXEC:
        for word, value in _WRONG.items():
            yield one(f"exec {key}: {word}", {"exec": {**PLUGIN, key: value}})
    for key in ("cluster", "user", "namespace", "extensions"):
        for word, value in _WRONG.items():
            yield Case(f"context {key}: {word}", {"config": config(TOKEN, **{key: value})})
    for key in ("apiVersion", "kind", "current-context", "clusters", "users", "contexts", "preferences", "extensions"):
        for word, value in _WRONG.items():
            yield Case(f"config {key}: {word}", {"config": {**config(TOKEN), key: value}})
    good = config(TOKEN)
    for section in ("clusters", "users", "contexts"):
        inner = section.removesuffix("s")
        broken = {"no name": {inner: {}}, "a text": "x", "null": None, "name 5": {"name": 5}, "again": good[section][0]}
        for word, value in broken.items():
            yield Case(f"{section} with {word}", {"config": {**good, section: [*good[section], value]}})
        unused = {"name": "unused", inner: {"server": 5, "token": 5, "namespace": 5}}
        yield Case(f"{section}: wrong type where nobody looks", {"config": {**good, section: [*good[section], unused]}})
    yield one("user with a key that nobody knows", {**TOKEN, "as_groups": ["x"]})
    yield one("cluster with a key that nobody knows", TOKEN, {**CLUSTER, "insecure-skip-tls-verfy": True})
    yield one("exec with a key that nobody knows", {"exec": {**PLUGIN, "arguments": []}})
    yield Case("context with a key that nobody knows", {"config": config(TOKEN, namspace="x")})
    yield Case("config with a key that nobody knows", {"config": {**config(TOKEN), "hello": "x"}})
    yield Case("empty", {"config": ""})
    yield Case("a list", {"config": "- a"})
    yield Case("not YAML", {"config": "a: ["})
    bomb = "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    yield Case("an alias bomb", {"config": f"a: &a [x]\n{bomb}"})
    yield Case("two documents", {"config": "apiVersion: v1\nkind: Config\n---\nusers: 5\n"})
    text = (
        "clusters: [{name: c, cluster: {server: 'https://@https@', certificate-authority-data: '@ca-data@'}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    for word, user in {
        "the token twice": "{token: one, token: two}",
        "a token that looks like a date": "{token: 2020-01-02}",
        "a token that looks like a number": "{token: '0123'}",
        "an octal token": "{token: 0123}",
        "a token that is y": "{token: y}",
        "a token that is on": "{token: on}",
        "a merged user": "{<<: {token: merged}}",
        "an alias": "{token: &t aliased, as: *t}",
        "a key in upper case": "{Token: upper}",
    }.items():
        yield Case(f"YAML: {word}", {"config": f"{text}users: [{{name: u, user: {user}}}]\n"})


# --- who asks -------------------------------------------------------------------------------------


def _authentication() -> Iterator[Case]:
    files = {"token": "secret-of-the-file\n", "empty": ""}
    kinds: Mapping[str, Mapping[str, Any]] = {
        "token": TOKEN, "file": {"tokenFile": "token"}, "missing file": {"tokenFile": "none"}, "basic": BASIC,
        "certificate": CLIENT, "exec": {"exec": PLUGIN}, "provider": {"auth-provider": {"name": "gcp"}},
    }  # fmt: skip
    for at, (first, user) in enumerate(kinds.items()):
        yield one(first, user, beside=files)
        for second, other in list(kinds.items())[at + 1 :]:
            if "file" not in first or "file" not in second:
                yield one(f"{first} and {second}", {**user, **other}, beside=files)
    yield one("an empty token file", {"tokenFile": "empty"}, beside=files)
    yield one("username alone", {"username": "jane"})
    yield one("password alone", {"password": "secret-of-jane"})
    yield one("token and password", {**TOKEN, "password": "p"})
    yield one("certificate files", {"client-certificate": "client.pem", "client-key": "client-key.pem"})
    yield one("certificate twice", {**CLIENT, "client-certificate": "client2.pem"})
    yield one("key twice", {**CLIENT, "client-key": "client2-key.pem"})
    yield one("certificate without key", {"client-certificate": "client.pem"})
    yield one("key without certificate", {"client-key": "client-key.pem"})
    yield one("the wrong key", {"client-certificate": "client.pem", "client-key": "client2-key.pem"})
    yield one("a missing certificate", {"client-certificate": "none", "client-key": "client-key.pem"})
    yield one("certificate data that is no base64", {**CLIENT, "client-certificate-data": "!!!!"})
    yield one("certificate data that is no certificate", {**CLIENT, "client-certificate-data": "aGVsbG8="})
    yield one("a login in the address", {}, {**CLUSTER, "server": "https://jane:secret-of-jane@@https@"})
    yield one("a login in the address and a token", TOKEN, {**CLUSTER, "server": "https://jane:secret-of-jane@@https@"})
    yield one("a token with a blank", {"token": "one two"})
    yield one("a token with a line inside", {"token": "one\ntwo"})


def _plain_http() -> Iterator[Case]:
    users = {
        "token": TOKEN,
        "file": {"tokenFile": "token"},
        "basic": BASIC,
        "exec": {"exec": PLUGIN},
        "certificate": CLIENT,
    }
    servers: Mapping[str, Mapping[str, Any]] = {
        "http": PLAIN, "bare": {"server": "@http@"}, "http with CA": {**CLUSTER, "server": "http://@http@"},
        "bare with CA": {**CLUSTER, "server": "@http@"},
        "bare and unchecked": {"server": "@http@", "insecure-skip-tls-verify": True},
        "http, CA and unchecked": {**CLUSTER, "server": "http://@http@", "insecure-skip-tls-verify": True},
    }  # fmt: skip
    for name, cluster in servers.items():
        for word, user in users.items():
            yield one(f"{word} over {name}", user, cluster, beside={"token": "secret-of-the-file"})
    yield one("a login in a plain address", {}, {"server": "http://jane:secret-of-jane@@http@"})
    yield one("impersonation over http", {**TOKEN, "as": "jane"}, PLAIN)
    yield one("a missing token file over http", {"tokenFile": "none"}, PLAIN)
    for word in (
        "ftp://@http@",
        "http://@http@/",
        "http://@http@/?x=1#y",
        "@http@/base",
        "https://",
        "HTTP://@http@",
    ):
        yield one(f"server {word}", {}, {"server": word})
    yield one("no server", TOKEN, {"certificate-authority-data": "@ca-data@"})


def _tls() -> Iterator[Case]:
    at = {"server": "https://@https@"}
    clusters: Mapping[str, Mapping[str, Any]] = {
        "CA file": {**at, "certificate-authority": "ca.pem"},
        "CA data in lines": {**at, "certificate-authority-data": "@ca-data@\n"},
        "missing CA file": {**at, "certificate-authority": "none.pem"},
        "CA file and data": {**CLUSTER, "certificate-authority": "ca.pem"},
        "empty CA file": {**at, "certificate-authority": "empty"},
        "no CA": at,
        "another CA": {**at, "certificate-authority": "strange.pem"},
        "unchecked": {**at, "insecure-skip-tls-verify": True},
        "unchecked, text": {**at, "insecure-skip-tls-verify": "false"},
        "unchecked, 1": {**at, "insecure-skip-tls-verify": 1},
        "unchecked with CA data": {**CLUSTER, "insecure-skip-tls-verify": True},
        "unchecked with CA file": {**at, "certificate-authority": "ca.pem", "insecure-skip-tls-verify": True},
        "CA data !!!!": {**at, "certificate-authority-data": "!!!!"},
        "CA data with a mark before": {**at, "certificate-authority-data": "!!@ca-data@"},
        "CA data of a text": {**at, "certificate-authority-data": "aGVsbG8="},
        "CA data empty": {**at, "certificate-authority-data": ""},
        "CA data with a blank inside": {**at, "certificate-authority-data": "aGVs bG8="},
        "CA data without padding": {**at, "certificate-authority-data": "aGVsbG8"},
        "CA data of a client": {**at, "certificate-authority-data": "@client-data@"},
        "named": {**CLUSTER, "tls-server-name": "named.test"},
        "named wrongly": {**CLUSTER, "tls-server-name": "wrong.test"},
        "unchecked and named wrongly": {**at, "insecure-skip-tls-verify": True, "tls-server-name": "wrong.test"},
        "a strange server": {**CLUSTER, "server": "https://@strange@"},
        "a strange server, unchecked": {"server": "https://@strange@", "insecure-skip-tls-verify": True},
    }  # fmt: skip
    for name, cluster in clusters.items():
        yield one(f"TLS: {name}", TOKEN, cluster, beside={"empty": ""})


def _impersonation() -> Iterator[Case]:
    parts: Mapping[str, Mapping[str, Any]] = {
        "as": {"as": "jane"}, "groups": {"as-groups": ["dev", "ops"]}, "uid": {"as-uid": "7"},
        "extra": {"as-user-extra": {"scopes": ["view", "edit"], "example.org/a b%": ["x"]}},
    }  # fmt: skip
    for number in range(1, 16):
        chosen = [word for bit, word in enumerate(parts) if number & (1 << bit)]
        user: dict[str, Any] = dict(TOKEN)
        for word in chosen:
            user |= parts[word]
        yield one(f"impersonation: {', '.join(chosen)}", user)
    yield one("impersonation: as a list", {**TOKEN, "as": ["x"]})
    yield one("impersonation: extra of a text", {**TOKEN, "as": "jane", "as-user-extra": {"scopes": "view"}})
    yield one("impersonation: groups with a number", {**TOKEN, "as": "jane", "as-groups": [5]})
    for flags in (
        {"as": "joe"},
        {"as-group": ["ops"]},
        {"as-uid": "9"},
        {"as": "joe", "as-group": ["ops", "x"], "as-uid": "9"},
    ):
        for word, user in (("", TOKEN), (" over the user's", {**TOKEN, "as": "jane", "as-groups": ["dev"]})):
            yield one(f"impersonation: flags {', '.join(flags)}{word}", user, flags=flags)


def _plugins() -> Iterator[Case]:
    answers: Mapping[str, str] = {
        "token": '{"token": "secret-of-the-plugin"}',
        "certificate": '{"clientCertificateData": @client-json@, "clientKeyData": @client-key-json@}',
        "certificate alone": '{"clientCertificateData": @client-json@}',
        "both": '{"token": "t", "clientCertificateData": @client-json@, "clientKeyData": @client-key-json@}',
        "nothing": "{}",
        "expired": '{"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}',
        "later": '{"token": "t", "expirationTimestamp": "2090-01-01T00:00:00+02:00"}',
        "garbage as its time": '{"token": "t", "expirationTimestamp": "soon"}',
        "a day as its time": '{"token": "t", "expirationTimestamp": "2090-01-01"}',
        "a number as token": '{"token": 5}',
        "null": "null",
    }  # fmt: skip
    for name, status in answers.items():
        answer = f'{{"apiVersion": "{_V1}", "kind": "ExecCredential", "status": {status}}}'
        yield one(f"plugin answers {name}", {"exec": PLUGIN}, beside={"credential.json": answer})
    for name, answer in {
        "another version": f'{{"apiVersion": "{_V1}beta1", "kind": "ExecCredential", "status": {{"token": "t"}}}}',
        "another kind": f'{{"apiVersion": "{_V1}", "kind": "Pod", "status": {{"token": "t"}}}}',
        "no JSON": "hello",
    }.items():
        yield one(f"plugin answers {name}", {"exec": PLUGIN}, beside={"credential.json": answer})
    changes: Mapping[str, Mapping[str, Any]] = {
        "v1beta1": {"apiVersion": "client.authentication.k8s.io/v1beta1", "args": ["beta.json"]},
        "v1beta1 without mode": {"apiVersion": f"{_V1}beta1", "args": ["beta.json"], "interactiveMode": None},
        "v1alpha1": {"apiVersion": "client.authentication.k8s.io/v1alpha1"},
        "no version": {"apiVersion": None}, "no command": {"command": None}, "no mode": {"interactiveMode": None},
        "a mode that is none": {"interactiveMode": "Sometimes"}, "if available": {"interactiveMode": "IfAvailable"},
        "always": {"interactiveMode": "Always"}, "found by PATH": {"command": "on-path"},
        "found in .": {"command": "plugin"}, "not found": {"command": "none-such"}, "not there": {"command": "./none"},
        "environment": {"env": [{"name": "EXTRA", "value": "more"}]},
        "variable without name": {"env": [{"value": "more"}]},
        "arguments": {"args": ["credential.json", "a b", ""]},
        "information": {"provideClusterInfo": True},
    }  # fmt: skip
    beta = (
        '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {"token": "beta"}}'
    )
    for name, change in changes.items():
        yield one(f"plugin: {name}", {"exec": {**PLUGIN, **change}}, beside={"beta.json": beta})
    yield one(
        "plugin: first . in PATH", {"exec": {**PLUGIN, "command": "plugin"}}, variables={"PATH": ".:/usr/bin:/bin"}
    )
    yield one(
        "plugin: empty entry in PATH", {"exec": {**PLUGIN, "command": "plugin"}}, variables={"PATH": "/usr/bin::/bin"}
    )
    known = {"exec": {**PLUGIN, "provideClusterInfo": True}}
    extension = [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}]
    for name, cluster in {
        "CA file": {"server": "https://@https@", "certificate-authority": "ca.pem"},
        "unchecked": {"server": "https://@https@", "insecure-skip-tls-verify": True},
        "named": {**CLUSTER, "tls-server-name": "named.test", "disable-compression": True},
        "extension": {**CLUSTER, "extensions": extension},
    }.items():
        yield one(f"plugin is told of {name}", known, cluster)


# --- the way there ---------------------------------------------------------------------------------

FAR: Final = {"server": "https://far.test:6443", "certificate-authority-data": "@ca-data@"}
FAR_PLAIN: Final = {"server": "http://far.test"}


def _proxies() -> Iterator[Case]:
    for url in (
        "http://@proxy@", "http://jane:word@@proxy@", "@proxy@", "socks5://@socks@", "socks5://jane:word@@socks@",
        "socks5h://@socks@", "ftp://@proxy@", "http://", "socks4://@socks@", "http:// @proxy@",
    ):  # fmt: skip
        for cluster in (FAR, FAR_PLAIN):
            yield one(f"proxy-url {url} to {cluster['server']}", TOKEN, {**cluster, "proxy-url": url})
    yield one("proxy-url for this machine", TOKEN, {**CLUSTER, "proxy-url": "http://@proxy@"})
    yield one("proxy-url and NO_PROXY", TOKEN, {**FAR, "proxy-url": "http://@proxy@"}, variables={"NO_PROXY": "*"})
    yield one("without compression", TOKEN, {**FAR, "proxy-url": "http://@proxy@", "disable-compression": True})
    yield one("named through a proxy", TOKEN, {**FAR, "proxy-url": "http://@proxy@", "tls-server-name": "named.test"})
    for variable in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        for cluster in (FAR, FAR_PLAIN):
            yield one(f"{variable} to {cluster['server']}", TOKEN, cluster, variables={variable: "http://@proxy@"})
    yield one(
        "upper case wins", TOKEN, FAR, variables={"HTTPS_PROXY": "http://@proxy@", "https_proxy": "http://127.0.0.1:1"}
    )
    for url in ("@proxy@", "socks5://@socks@", "socks5h://@socks@", "http://jane:word@@proxy@"):
        yield one(f"HTTPS_PROXY {url}", TOKEN, FAR, variables={"HTTPS_PROXY": url})
    yield one("HTTPS_PROXY for this machine", TOKEN, variables={"HTTPS_PROXY": "http://@proxy@"})


def _spared() -> Iterator[Case]:
    hosts = ("far.test", "sub.far.test", "10.1.2.3", "[fd00::1]")
    words: Sequence[str] = (
        "far.test", ".far.test", "*.far.test", "far.test:6443", "far.test:443", "ar.test", "FAR.test", " far.test ",
        "10.0.0.0/8", "10.1.2.3", "10.1.2.3:6443", "10.1.2.3:443", "fd00::/8", "fd00::1", "[fd00::1]:6443", "*", "",
    )  # fmt: skip
    for host in hosts:
        for word in words:
            cluster = {"server": f"http://{host}:6443"}
            variables = {"HTTP_PROXY": "http://@proxy@", "NO_PROXY": word}
            yield one(f"NO_PROXY {word!r} to {host}", {}, cluster, variables=variables, flags={"request-timeout": "1s"})


# --- files, flags, pods ----------------------------------------------------------------------------


def _files() -> Iterator[Case]:
    first, second = config(TOKEN), config({"token": "second"}, PLAIN)
    both = {"KUBECONFIG": "@dir@/case/config:@dir@/case/second"}
    yield Case("the first file wins", {"config": first, "second": second}, variables=both)
    yield Case("the first file wins, turned round", {"config": second, "second": first}, variables=both)
    only = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {"token": "other"}}]}
    yield Case("a user of the first file", {"config": only, "second": first}, variables=both)
    yield Case("a user of the second file", {"config": first, "second": only}, variables=both)
    yield Case("a broken second file", {"config": first, "second": "a: ["}, variables=both)
    yield Case("an empty first file", {"config": "", "second": first}, variables=both)
    yield Case(
        "missing and empty entries", {"config": first}, variables={"KUBECONFIG": ":@dir@/case/none::@dir@/case/config"}
    )
    yield Case("a directory", {"config": first}, variables={"KUBECONFIG": "@dir@:@dir@/case/config"})
    yield Case("only missing files", {"config": first}, variables={"KUBECONFIG": "@dir@/case/none"})
    halves = {**first, "current-context": ""}
    yield Case("the context of the second file", {"config": halves, "second": first}, variables=both)
    yield Case("no current context", {"config": halves})
    yield Case("an unknown current context", {"config": {**first, "current-context": "none"}})
    for key in ("cluster", "user"):
        yield Case(f"a context whose {key} is not there", {"config": config(TOKEN, **{key: "none"})})
        yield Case(f"a context without {key}", {"config": config(TOKEN, **{key: ""})})
        yield Case(f"a context whose {key} is not there, and no {key}s", {"config": {**config(TOKEN), f"{key}s": []}})
    yield Case("paths count from their file", {"sub/config": config({"tokenFile": "token"})}, beside={"sub/token": "t"},
               variables={"KUBECONFIG": "@dir@/case/sub/config"})  # fmt: skip
    yield Case("no file at all", {}, flags={"kubeconfig": "@dir@/case/none"})


def _flags() -> Iterator[Case]:
    at = "https://@https@"
    for name, flags in {
        "server https": {"server": at}, "server http": {"server": "http://@http@"}, "server bare": {"server": "@http@"},
        "server wrong": {"server": "ftp://@http@"}, "token": {"token": "flag"},
        "unchecked": {"insecure-skip-tls-verify": "true"}, "name": {"tls-server-name": "named.test"},
        "wrong name": {"tls-server-name": "wrong.test"}, "context": {"context": "x"}, "no context": {"context": "none"},
        "cluster": {"cluster": "c"}, "no cluster": {"cluster": "none"}, "user": {"user": "u"},
        "no user": {"user": "none"},
        "server and token": {"server": "@http@", "token": "flag"},
    }.items():  # fmt: skip
        yield one(f"flags: {name}", TOKEN, flags=flags)
        named = {**CLUSTER, "tls-server-name": "wrong.test"}
        yield one(f"flags: {name}, over another name", TOKEN, named, flags=flags)
    for word, user in {
        "file": {"tokenFile": "token"}, "basic": BASIC, "exec": {"exec": PLUGIN}, "certificate": CLIENT, "nothing": {},
    }.items():  # fmt: skip
        yield one(f"flags: token over {word}", user, flags={"token": "flag"}, beside={"token": "of-the-file"})


def _pods() -> Iterator[Case]:
    pod = {"token": "of-the-pod", "ca.crt": "@ca-pem@", "namespace": "team"}
    address = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "@https-port@"}
    none = {**address, "KUBECONFIG": "@dir@/case/none"}
    yield Case("in a pod", {}, variables=none, pod=pod)
    yield Case(
        "in a pod, with an empty kubeconfig",
        {"config": ""},
        variables={**address, "KUBECONFIG": "@dir@/case/config"},
        pod=pod,
    )
    yield Case("in a pod, with a kubeconfig", {"config": config(TOKEN)}, variables=address, pod=pod)
    yield Case("in a pod without a token", {}, variables=none, pod={"ca.crt": "@ca-pem@"})
    yield Case("in a pod without an address", {}, variables={"KUBECONFIG": "@dir@/case/none"}, pod=pod)
    yield Case("in a pod, token flag", {}, variables=none, pod=pod, flags={"token": "flag"})
    yield Case("in a pod, server flag", {}, variables=none, pod=pod, flags={"server": "http://@http@"})
    yield Case("in a pod, as", {}, variables=none, pod=pod, flags={"as": "jane"})
    yield Case("in a pod with another CA", {}, variables=none, pod={**pod, "ca.crt": "@strange-pem@"})
