"""One run with a mutated kubeconfig, to a good server: what it sends where, and what it tells.

The server's certificate is nobody's, so nothing may reach it over TLS unless the file or a flag says that it goes
unchecked. Over plain HTTP no credential may.
"""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from tools.api_server import kubeconfig, own_certificate
from tools.fuzz.examples import examples
from tools.fuzz.judged import Outcome
from tools.fuzz.mutations import VALUES, WILD, Pool, mutated, pool_of
from tools.fuzz.served import SECRET, Served, live
from tools.hostile_server import HostileServer

WORDS: Final = (("version",), ("version",), ("devices",), ("claims", "-A"), ("taint", "--list"))
UNCHECKED: Final = "insecure-skip-tls-verify"
FLAGS: Final = (
    (), (), (), (), ("--context", "test"), ("--user", "u"), ("--cluster", "c"), ("--as", "jane"),
    ("--as", "jane", "--as-group", "a"), ("--token", SECRET), ("--context", "none"), (f"--{UNCHECKED}",),
)  # fmt: skip
_PLUGIN: Final = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": SECRET, "expirationTimestamp": "2036-01-01T00:00:00Z"},
}
_EXEC: Final = {
    "apiVersion": _PLUGIN["apiVersion"],
    "command": "/bin/echo",
    "args": [json.dumps(_PLUGIN)],
    "env": [{"name": "A", "value": "b"}],
    "interactiveMode": "Never",
    "provideClusterInfo": False,
    "installHint": "none",
}
USERS: Final[tuple[dict[str, Any], ...]] = (
    {"token": SECRET},
    {"token": SECRET},
    {"tokenFile": "TOKEN"},
    {"username": "jane", "password": SECRET},
    {"exec": _EXEC},
    {"token": SECRET, "as": "jane", "as-groups": ["a"], "as-uid": "7", "as-user-extra": {"x": ["y"]}},
    {"auth-provider": {"name": "oidc", "config": {"id-token": SECRET}}},
    {"client-certificate-data": b64encode(b"x").decode(), "client-key-data": b64encode(b"y").decode()},
)
CLUSTERS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"disable-compression": True},
    {"tls-server-name": "x"},
    {"certificate-authority-data": b64encode(b"x").decode()},
    {"extensions": [{"name": "e", "extension": {"a": 1}}]},
)


@cache
def _pool() -> Pool:
    configs = [kubeconfig("https://127.0.0.1:1", user, **cluster) for user in USERS for cluster in CLUSTERS]
    return {**pool_of(configs), "server": ["http://127.0.0.1:1", "https://[::1]:1", "127.0.0.1:1", "ftp://x", ""]}


@cache
def _tls() -> Any:
    with TemporaryDirectory() as folder:
        return own_certificate(Path(folder))


def run(seed: int, folder: Path) -> Outcome:
    """The run of this number. The kubeconfig of a failure is kept."""
    chance = random.Random(seed)
    secure = chance.random() < 0.5
    served = Served(chance.choice(examples()).items, -1)
    flags = chance.choice(FLAGS)
    words = [*chance.choice(WORDS), *flags]
    path = folder / f"{seed}.kubeconfig"
    with closing(HostileServer(served.misbehave, discovery=False, tls=_tls() if secure else None)) as server:
        data = _written(_config(server.url, secure, folder, chance), chance)
        path.write_bytes(data)
        outcome = live(words, path)
        heads = list(server.heads)
    failure = outcome.failure or _sent(heads, secure, may_be_unchecked=_is_unchecked(data) or len(flags) == 1)
    if not failure:
        path.unlink()
        # A certificate that is refused was looked at: the file was read to its end.
        return Outcome("", bool(heads) or outcome.accepted or (secure and _is_whole(data)))
    return Outcome(f"{' '.join(words)}: {failure}", bool(heads))


def _sent(heads: list[bytes], secure: bool, *, may_be_unchecked: bool) -> str:
    if secure:
        return "a request to a server that nobody vouches for" if heads and not may_be_unchecked else ""
    for head in heads:
        if SECRET.encode() in head or b"\r\nauthorization:" in head.lower():
            return f"a credential over plain HTTP: {head!r}"
    return ""


def _values(value: Any, key: str) -> Iterator[Any]:
    for name, below in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        if name == key:
            yield below
        yield from _values(below, key)


def _loaded(data: bytes) -> Any:
    """What is written, as JSON where it is that: the YAML library knows no halves of characters in escapes."""
    with suppress(ValueError):
        return json.loads(data)
    try:
        return yaml.load(data, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError):
        return None


def _is_unchecked(data: bytes) -> bool:
    """Whether the file says somewhere that a certificate is not looked at."""
    return any(value is True for value in _values(_loaded(data), UNCHECKED))


def _is_whole(data: bytes) -> bool:
    config = _loaded(data)
    return isinstance(config, dict) and all(isinstance(config.get(name), list) for name in ("clusters", "users"))


def _config(url: str, secure: bool, folder: Path, chance: random.Random) -> Any:
    token = folder / "token"
    token.write_text(f"{SECRET}\n")
    user = chance.choice(USERS)
    user = {"tokenFile": str(token)} if "tokenFile" in user else user
    more = dict(chance.choice(CLUSTERS))
    if secure and chance.random() < 0.7:
        more[UNCHECKED] = chance.random() < 0.9
    config: Any = kubeconfig(url, user, **more)
    if chance.random() < 0.5:
        config = (mutated([config], chance, _pool()) or [None])[0]
    elif chance.random() < WILD:
        # Where it matters most: all that a connection is made of.
        section = chance.choice(("clusters", "users", "contexts"))
        inner = config[section][0][section.removesuffix("s")]
        inner[chance.choice([*inner])] = chance.choice(VALUES)
    elif isinstance(config.get("users"), list):
        # What every file may have besides.
        config["users"].append({"name": "other", "user": {"token": "z"}})
        config["preferences"] = {}
    return config


def _written(config: Any, chance: random.Random) -> bytes:
    text = json.dumps(config)
    if "\\ud8" not in text and chance.random() < 0.5:
        text = yaml.safe_dump(json.loads(text), default_flow_style=chance.choice((None, False, True)), width=200)
    data = bytearray(text.encode())
    if chance.random() < 0.1:
        for _ in range(chance.choice((1, 2, 5))):
            data[chance.randrange(len(data))] = chance.choice(b"\x00\n\x1b:#&*{}[]\"'\\\x7f\xff\t -")
        return bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])
    return bytes(data)
