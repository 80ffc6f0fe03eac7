"""Estimated and actual costs of the functions. What is expected here was answered by Kubernetes 1.36."""

from __future__ import annotations

import pytest

from tests.cel.library.support import costs

# Expression, estimated maximum, actual cost.
COSTS = [
    ('b"a" < b"b" && false < true', 2, 2),
    ("18446744073709551615u > 9223372036854775807", 1, 1),
    ('"a" + "b" == "ab" && [1] + [2] == [1, 2] && b"a" + b"b" == b"ab"', 36, 6),
    ('"a" < "b" && "B" < "a" && "é" > "z"', 3, 3),
    ("dyn(1) == 1u && dyn(1.0) == 1 && !(dyn(true) == 1)", 7, 4),
    ("1 + 2 * 3 == 7", 3, 3),
    ('timestamp("2026-01-01T5:00:00,5Z") == timestamp("2026-01-01T05:00:00.5Z")', 3, 1),
    ('string(timestamp("2026-01-01T00:00:00.120Z")) == "2026-01-01T00:00:00.12Z"', 5, 3),
    ('int(timestamp("1969-12-31T23:59:58.5Z")) == -2 && int(duration("1us")) == 1000', 6, 2),
    ('bool("t") && bool("TRUE") && !bool("0") && !bool("False")', 6, 2),
    ('string(timestamp("2026-01-01T00:00:00+05:30")) == "2026-01-01T00:00:00+05:30"', 5, 3),
    ('bytes("é") == b"\\303\\251" && size(bytes("é")) == 2 && size("é") == 1', 7, 5),
    ('timestamp("2026-01-01T00:00:00+05:30").getHours() == 18', 3, 2),
    ('"TÉST".lowerAscii() == "tÉst" && "tést".upperAscii() == "TéST"', 4, 4),
    ('"héllo".charAt(1) == "é" && "abc".charAt(3) == ""', 3, 3),
    ('"\\u00a0 \\ta\\u2003".trim() == "a" && "\\u001ca".trim() == "\\u001ca"', 4, 4),
    ('["a", "b"].join("-") == "a-b" && [].join() == ""', 1844674407370955285, 2),
    ('strings.quote("a\\n\\"\\\\") == "\\"a\\\\n\\\\\\"\\\\\\\\\\""', 2, 2),
    ('"%b %b %x %X %x".format([true, -5, "Hi", b"\\xff", -30]) == "1 -101 4869 FF -1e"', 14, 4),
    ('"100%% %s".format(["x"]) == "100% x"', 12, 2),
    ('"%.3f %.3f".format([-0.0001, 1.0005]) == "-0.000 1.000"', 13, 3),
    ('"%s".format([{2: "x", 10: "y"}]) == "{10:\\"y\\", 2:\\"x\\"}"', 43, 3),
    ('"é %s ü".format(["ß"]) == "é ß ü"', 12, 2),
    ('"%e %.14e".format([1052.032911275, -0.000123]) == "1.052033×10⁰³ -1.230000×10⁻⁰⁴"', 14, 4),
    ('"abc 123".find("[0-9]+") == "123" && "abc".find("x") == ""', 4, 4),
    ('"baac".findAll("a*") == ["", "aa", ""]', 12, 2),
    ('"äöü".findAll("[äü]") == ["ä", "ü"]', 12, 2),
    ('"a\\nb".matches("a.b") == false && "a\\nb".matches("(?s)a.b")', 4, 4),
    ('"A100".matches("(?i)a1") && !"A100".matches("^1") && matches("x", "")', 4, 4),
    ('["bb", "a", "cc", "d"].sortBy(s, s.size()) == ["a", "d", "bb", "cc"]', 143, 103),
    ('[3, 1, 2].sort() == [1, 2, 3] && ["b", "a"].sort() == ["a", "b"] && [].sort() == []', 122, 61),
    ("[1, 2, 3, 4].slice(1, 3) == [2, 3] && [1].slice(1, 1) == []", 65, 25),
    ("dyn([1, 2]).flatten() == [1, 2] && [[1], [2]].flatten(0) == [[1], [2]]", 107, 26),
    ("[dyn(1), dyn([2, 3])].flatten(1) == [1, 2, 3]", 46, 14),
    ('quantity("1Gi") == quantity("1024Mi") && quantity("1Gi") != quantity("1G")', 1844674407370955269, 6),
    ('cel.bind(q, quantity("1.5Gi"), q.add(1).compareTo(q) == 0)', 16, 6),
    ('cel.bind(q, quantity("1Gi"), q.compareTo(quantity("1.5Gi")) < 0 && !q.isInteger())', 18, 8),
    ('sign(quantity("-1")) == -1 && sign(quantity("0")) == 0 && sign(quantity("1n")) == 1', 9, 9),
    ('cel.bind(q, quantity("1Gi"), q != quantity("1.5Gi") && q.isInteger())', 1844674407370955279, 6),
    ('quantity("1500m").asApproximateFloat() == 1.5', 3, 3),
    ('semver("18446744073709551615.0.0").major() == -1', 5, 5),
    ('ip("192.168.0.1").family() == 4 && ip("::1").family() == 6', 7, 7),
    ('ip.isCanonical("::1") && !ip.isCanonical("0::1") && !ip.isCanonical("2001:DB8::1")', 7, 7),
    ('cidr("::1/128").prefixLength() == 128 && string(cidr("10.0.0.0/8")) == "10.0.0.0/8"', 6, 6),
    ('url("HTTPS://user:pw@Example.com:80/a%20b?x=1#f").getScheme() == "https"', 7, 7),
    ('url("mailto:a@b").getHost() == "" && url("//h/p").getHost() == "h"', 5, 5),
    ('format.dns1123Label().validate("a.b").value() == ["must not contain dots"]', 45, 11),
]


@pytest.mark.parametrize(("expression", "estimated", "actual"), COSTS)
def test_costs(expression: str, estimated: int, actual: int) -> None:
    assert costs(expression) == (estimated, actual)
