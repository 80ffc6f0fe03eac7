"""URLs, parsed like request URLs in Go's net/url."""

from __future__ import annotations

from kubectl_dra.api.codec import quoted
from kubectl_dra.cel.errors import EvaluationError, no_such_overload
from kubectl_dra.cel.functions import Function
from kubectl_dra.cel.library.addresses import AddressError, parse_address
from kubectl_dra.cel.library.support import NOMINAL, accepted, declared, member, overload, reading
from kubectl_dra.cel.types import BOOL, STRING, list_of, map_of
from kubectl_dra.cel.types import URL as URL_TYPE
from kubectl_dra.cel.values import Value

_ALPHANUMERIC = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_UNRESERVED = _ALPHANUMERIC | frozenset(b"-_.~")
# Which bytes stand for themselves, by part of the URL.
_PATH = _UNRESERVED | frozenset(b"$&+,/:;=@")
_HOST = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_USER = _UNRESERVED | frozenset(b"$&+,;=")
_FRAGMENT = _UNRESERVED | frozenset(b"$&+,/:;=?@!()*")
_RAW_PATH = _UNRESERVED | frozenset(b"!$&'()*+,;=:@[]%/")
_RAW_FRAGMENT = _FRAGMENT | frozenset(b"'[]%")
_USERINFO = _UNRESERVED | frozenset(b":!$&'()*+,;=%@")
_HEX = frozenset(b"0123456789abcdefABCDEF")


class URLError(ValueError):
    """The text is not a URL."""


class URL:
    """A parsed URL; ``path`` is escaped. Two are equal if their normal forms are."""

    __slots__ = ("_text", "host", "path", "query", "scheme")

    cel_type = URL_TYPE

    def __init__(self, scheme: str, host: str, path: str, query: str, text: str) -> None:
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query
        self._text = text

    def cel_equals(self, other: Value) -> bool:
        if other.__class__ is not URL:
            raise no_such_overload()
        return bool(self._text == other._text)

    def __str__(self) -> str:
        return self._text


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _escaped(data: bytes, plain: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in data)


def _check_escape(data: bytes, at: int) -> None:
    if at + 2 >= len(data) or data[at + 1] not in _HEX or data[at + 2] not in _HEX:
        raise URLError(f"invalid URL escape {quoted(_text(data[at : at + 3]))}")


def _unescaped(data: bytes, plus_is_space: bool = False) -> bytes:
    """Decode percent escapes of a path, user, fragment or query."""
    if plus_is_space:
        data = data.replace(b"+", b" ")
    if b"%" not in data:
        return data
    decoded = bytearray()
    at = 0
    while at < len(data):
        if data[at] == 0x25:
            _check_escape(data, at)
            decoded.append(int(data[at + 1 : at + 3], 16))
            at += 3
        else:
            decoded.append(data[at])
            at += 1
    return bytes(decoded)


def _unescaped_host(data: bytes, zone: bool = False) -> bytes:
    """Decode a host. Only non-ASCII bytes may be escaped, and in a zone also characters valid in hosts."""
    at = 0
    while at < len(data):
        if data[at] == 0x25:
            _check_escape(data, at)
            code = int(data[at + 1 : at + 3], 16)
            escape = data[at : at + 3]
            allowed = code in _HOST or code == 0x20 if zone else code >= 0x80
            if not allowed and escape != b"%25":
                raise URLError(f"invalid URL escape {quoted(_text(escape))}")
            at += 3
        else:
            if data[at] < 0x80 and data[at] not in _HOST:
                shown = quoted(_text(data[at : at + 1]))
                raise URLError(f"invalid character {shown} in host name")
            at += 1
    return _unescaped(data)


def _scheme(data: bytes) -> tuple[bytes, bytes]:
    for at, byte in enumerate(data):
        if byte == 0x3A:
            if at == 0:
                raise URLError("missing protocol scheme")
            return data[:at], data[at + 1 :]
        if byte in b"+-.0123456789":
            if at == 0:
                break
        elif byte not in _ALPHANUMERIC:
            break
    return b"", data


def _check_port(colon_port: bytes) -> None:
    if colon_port and (colon_port[:1] != b":" or colon_port[1:].strip(b"0123456789")):
        raise URLError(f"invalid port {quoted(_text(colon_port))} after host")


def _parse_host(scheme: bytes, host: bytes) -> bytes:
    bracket = host.rfind(b"[")
    if bracket > 0:
        raise URLError("invalid IP-literal")
    if bracket == 0:
        return _parse_bracketed(host)
    colon = host.find(b":")
    if colon >= 0:
        # Lists of hosts with ports are tolerated except where everybody knows better.
        if scheme not in (b"http", b"https"):
            colon = host.rfind(b":")
        _check_port(host[colon:])
    return _unescaped_host(host)


def _parse_bracketed(host: bytes) -> bytes:
    end = host.rfind(b"]")
    if end < 0:
        raise URLError("missing ']' in host")
    _check_port(host[end + 1 :])
    address = host[1:end]
    zone = address.find(b"%25")
    if zone >= 0:
        decoded = _unescaped_host(address[:zone]) + _unescaped_host(address[zone:], zone=True)
    else:
        decoded = _unescaped_host(address)
    try:
        parsed = parse_address(_text(decoded))
    except AddressError as error:
        raise URLError(f"invalid host: {error}") from None
    if parsed.bits == 32:
        raise URLError("invalid IP-literal")
    return b"[" + decoded + b"]" + host[end + 1 :]


def _parse_user(userinfo: bytes) -> str:
    """The user part in normal form, with its `@`."""
    if not _USERINFO.issuperset(userinfo):
        raise URLError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(b":")
    text = _escaped(_unescaped(name), _USER)
    if colon:
        text += ":" + _escaped(_unescaped(password), _USER)
    return text + "@"


def _parse(data: bytes, request: bool, fragment: bytes = b"") -> URL:
    if any(byte < 0x20 or byte == 0x7F for byte in data):
        raise URLError("net/url: invalid control character in URL")
    if not data and request:
        raise URLError("empty url")
    if data == b"*":
        return URL("", "", "*", "", "*")
    scheme, rest = _scheme(data)
    scheme = scheme.lower()
    rest, mark, query = rest.partition(b"?")
    tail = _text(mark + query) + _fragment_text(fragment)
    prefix = _text(scheme) + ":" if scheme else ""
    if not rest.startswith(b"/"):
        if scheme:
            return URL(_text(scheme), "", "", _text(query), prefix + _text(rest) + tail)
        if request:
            raise URLError("invalid URI for request")
        if b":" in rest.partition(b"/")[0]:
            raise URLError("first path segment in URL cannot contain colon")
    user, host, has_authority = "", b"", False
    if rest.startswith(b"//") and (scheme or (not request and not rest.startswith(b"///"))):
        has_authority = True
        authority, slash, path = rest[2:].partition(b"/")
        rest = slash + path
        userinfo, at, host = authority.rpartition(b"@")
        host = _parse_host(scheme, host)
        user = _parse_user(userinfo) if at else ""
    path = _unescaped(rest)
    if has_authority and (host or user or rest):
        prefix += "//" + user + _escaped(host, _HOST)
    raw = _raw_path(rest, path)
    return URL(_text(scheme), _text(host), raw, _text(query), prefix + raw + tail)


def _raw_path(written: bytes, path: bytes) -> str:
    """The path with its escapes as written if they are valid, otherwise escaped anew."""
    if _RAW_PATH.issuperset(written):
        return _text(written)
    return _escaped(path, _PATH)


def _fragment_text(fragment: bytes) -> str:
    if not fragment:
        return ""
    decoded = _unescaped(fragment)
    sound = _RAW_FRAGMENT.issuperset(fragment)
    return "#" + (_text(fragment) if sound else _escaped(decoded, _FRAGMENT))


def parse_request_url(text: str) -> URL:
    """The URL of a request: absolute, or a path from the root. Raises URLError."""
    try:
        return _parse(text.encode(), request=True)
    except URLError as error:
        raise URLError(f"parse {quoted(text)}: {error}") from None


def _url(text: str) -> URL:
    try:
        # A fragment is not understood by the first, stricter reading, but belongs to neither path nor query.
        parse_request_url(text)
        main, _, fragment = text.encode().partition(b"#")
        return _parse(main, False, fragment)
    except URLError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _split_port(url: URL) -> tuple[str, str]:
    host, port = url.host, ""
    name, colon, digits = host.rpartition(":")
    if colon and not digits.strip("0123456789"):
        host, port = name, digits
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, port


def _query_of(url: URL) -> dict[str, list[str]]:
    query: dict[str, list[str]] = {}
    for part in url.query.encode().split(b"&"):
        if not part or b";" in part:
            continue
        name, _, value = part.partition(b"=")
        try:
            key, text = _text(_unescaped(name, True)), _text(_unescaped(value, True))
        except URLError:
            continue
        query.setdefault(key, []).append(text)
    return query


def functions() -> list[Function]:
    one = (URL_TYPE,)
    query = map_of(STRING, list_of(STRING))
    return declared(
        "URLs",
        {
            "url": [overload("string_to_url", (STRING,), URL_TYPE, _url, reading(sized=True))],
            "getScheme": [member("url_get_scheme", one, STRING, lambda url: url.scheme, NOMINAL)],
            "getHost": [member("url_get_host", one, STRING, lambda url: url.host, NOMINAL)],
            "getHostname": [member("url_get_hostname", one, STRING, lambda url: _split_port(url)[0], NOMINAL)],
            "getPort": [member("url_get_port", one, STRING, lambda url: _split_port(url)[1], NOMINAL)],
            "getEscapedPath": [member("url_get_escaped_path", one, STRING, lambda url: url.path, NOMINAL)],
            "getQuery": [member("url_get_query", one, query, _query_of, NOMINAL)],
            "isURL": [overload("is_url_string", (STRING,), BOOL, accepted(parse_request_url, URLError))],
        },
    )
