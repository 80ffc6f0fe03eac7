"""URLs. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import failure, holds

TRUE = [
    'url("HTTPS://user:pw@Example.com:80/a%20b?x=1#f").getScheme() == "https"',
    'url("https://example.com:80/").getHost() == "example.com:80"',
    'url("https://example.com:80/").getHostname() == "example.com"',
    'url("https://example.com:80/").getPort() == "80"',
    'url("https://[::1]:80/").getHostname() == "::1"',
    'url("https://[fe80::1%25en0]/").getHostname() == "fe80::1%en0"',
    'url("https://h/a b").getEscapedPath() == "/a%20b"',
    'url("https://h/%41").getEscapedPath() == "/%41"',
    'url("/x").getEscapedPath() == "/x"',
    'url("https://h/?k=a&k=b+c&%C3%A9=%20&bad=%zz").getQuery() == {"k": ["a", "b c"], "é": [" "]}',
    'url("https://h/p#frag") != url("https://h/p")',
    'url("HTTP://h/") == url("http://h/")',
    'isURL("/abs")',
    'isURL("mailto:a@b")',
    'isURL("*")',
    '!isURL("rel/path")',
    '!isURL("")',
    '!isURL("https://a b/")',
    '!isURL("http://a:b/")',
    'url("mailto:a@b").getHost() == ""',
    'url("//h/p").getHost() == "h"',
]

ERRORS = [
    ('url("rel") == url("/")', 'URL parse error during conversion from string: parse "rel": invalid URI for request'),
    (
        'url("https://a b/") == url("/")',
        'URL parse error during conversion from string: parse "https://a b/": invalid character " " in host name',
    ),
    (
        'url("https://h:x/") == url("/")',
        'URL parse error during conversion from string: parse "https://h:x/": invalid port ":x" after host',
    ),
    (
        'url("https://h/%zz") == url("/")',
        'URL parse error during conversion from string: parse "https://h/%zz": invalid URL escape "%zz"',
    ),
    (
        'url("https://[::1/") == url("/")',
        "URL parse error during conversion from string: parse \"https://[::1/\": missing ']' in host",
    ),
    ('url(":x") == url("/")', 'URL parse error during conversion from string: parse ":x": missing protocol scheme'),
    ('url("/a") == dyn("/a")', "no such overload"),
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert holds(expression)


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_errors(expression: str, message: str) -> None:
    assert message in failure(expression)
