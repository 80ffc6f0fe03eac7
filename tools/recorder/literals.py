"""Literals and paths that made-up device selectors are built from, by CEL type."""

from __future__ import annotations

LITERALS: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false"),
    "int": (
        *("0", "1", "-1", "2", "3", "7", "10", "63", "64", "400", "0x1F", "-0x8", "2147483648", "1000000"),
        *("9223372036854775807", "-9223372036854775808", "9007199254740993", "9007199254740992", "-9007199254740993"),
    ),
    "uint": ("0u", "1u", "2u", "7u", "0x1Fu", "18446744073709551615u", "9223372036854775808u", "9007199254740993u"),
    "double": (
        *("0.0", "-0.0", "1.0", "1.5", "-2.5", "0.1", "1e3", "1e-7", "1e21", "3.0e100", "1e308", "2.5", "3.5"),
        *("9007199254740992.0", "9223372036854775807.0", "-9223372036854775808.0", "18446744073709551615.0"),
        *("double('NaN')", "double('Infinity')", "double('-inf')", "1.7976931348623157e308", "5e-324"),
    ),
    "string": (
        *('"a"', '""', '"A100-SXM4-80GB"', '"gpu.example.com"', '"1"', '"-3"', '"1.5"', '"true"', '"True"', '"nope"'),
        *('"a,b,,c"', '"  x\\t "', '"Ünïcode ✓"', '"😀"', "'it\\'s'", 'r"a\\d"', '"\\u00e9\\n\\x41"'),
        *('"model"', '"T4"', '"mlx5_0"', '"0x10"', '"1e3"', '"9223372036854775808"', '"ABC abc"', '"zażółć"', '"%s"'),
    ),
    "bytes": ('b"abc"', 'b""', 'b"\\xff\\x00"', 'b"é"', 'bytes("T4")', "b'\\303\\277'"),
    "null_type": ("null",),
    "google.protobuf.Duration": (
        *('duration("1h")', 'duration("1.5s")', 'duration("-2m3s")', 'duration("100ns")', 'duration("0s")'),
        *('duration("290000h")', 'duration("1d")', 'duration("1h30m")', 'duration("")', 'duration("1us")'),
    ),
    "google.protobuf.Timestamp": (
        *('timestamp("2024-02-29T12:30:45.678Z")', 'timestamp("1970-01-01T00:00:00Z")', "timestamp(0)"),
        *('timestamp("9999-12-31T23:59:59.999999999Z")', 'timestamp("0001-01-01T00:00:00Z")', "timestamp(-1)"),
        *('timestamp("2024-03-10T01:59:59-08:00")', 'timestamp("2024-13-01T00:00:00Z")', "timestamp(253402300800)"),
    ),
    "type": ("int", "string", "bool", "type(1)", "type(device.driver)", "google.protobuf.Timestamp", "list", "type"),
}

QUANTITIES = (
    *(
        "1",
        "0",
        "-5",
        "1.5Ti",
        "80Gi",
        "81559Mi",
        "16Gi",
        "1500m",
        "100n",
        "1u",
        "0.1",
        "1e3",
        "1E3",
        "5E",
        "12e-3",
        "1.5",
    ),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "99999999999999999999Gi", "1.123456789123"),
    *("0.5Ki", "1.1Mi", "3.0", "100G", "400G", "1e19", "4k", "1K", "", "Gi", "1 Gi", "+3", "0x1", "1e", "8Ei", "7.9Ei"),
)
VERSIONS = (
    *("8.0.0", "9.0.0", "535.104.5", "550.54.15-rc.1+build5", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0+a", "1.2.3"),
    *(
        "v1.2.3",
        "1.2",
        "01.2.3",
        "1",
        "10.2.0",
        "18446744073709551616.0.0",
        "1.0.0-01",
        "",
        "v1",
        "1.2.3.4",
        "1.0.0-a..b",
    ),
)
ADDRESSES = (
    *("10.1.2.3", "fd00::1", "::1", "127.0.0.1", "0.0.0.0", "::", "224.0.0.1", "169.254.1.1", "ff02::1", "fe80::1"),
    *("::ffff:1.2.3.4", "1.2.3", "01.2.3.4", "fe80::1%eth0", "2001:DB8::1", "2001:db8:0:0::1", "", "256.1.1.1"),
)
NETWORKS = (
    *(
        "10.0.0.0/8",
        "10.1.2.3/24",
        "fd00::/8",
        "::/0",
        "0.0.0.0/0",
        "10.1.2.3/32",
        "::1/128",
        "10.0.0.0/33",
        "10.0.0.0",
    ),
    *("::ffff:1.2.3.0/120", "10.0.0.0/08", "fe80::1%eth0/64", "192.168.0.1/16"),
)
URLS = (
    *("https://example.com:80/path?query=val#frag", "https://[::1]:443/", "http://a.b", "/path", "mailto:x@y.z", "a b"),
    *(
        "https://user:pw@example.com/a%20b?k=v&k=w&x",
        "://bad",
        "https://h:port/",
        "ftp://x/é",
        "//host/p",
        "",
        "http://[::1",
    ),
)
PATTERNS = (
    *(
        "^A100",
        "a.*b",
        "[0-9]+GB$",
        "(?i)sxm",
        "",
        "(a",
        "\\\\d{2,}",
        "[[:alpha:]]+",
        "\\\\p{Greek}",
        "\\\\p{greek}",
        "\\\\pL+",
    ),
    *(
        "a|b|",
        "(?P<x>a)",
        "(?=a)",
        "x{1001}",
        "\\\\bT4\\\\b",
        "(a*)*",
        "[^a-z]",
        "\\\\p{Lu}",
        "(?s).",
        "a{2}{3}",
        "\\\\C",
        "\\\\Qa.b\\\\E",
    ),
)
FORMATS = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "labelValue", "uri"),
    *("dns1123SubdomainPrefix", "dns1035LabelPrefix", "uuid", "byte", "date", "datetime", "nosuch"),
)
FORMATTED = (
    *("my-label", "My_Label", "a.b.c", "1abc", "-a", "a-", "example.com/name", "123e4567-e89b-12d3-a456-426614174000"),
    *("aGVsbG8=", "aGVsbG8", "2021-01-01", "2021-13-01", "2021-01-01T00:00:00Z", "https://example.com", "", "a" * 64),
)
CLAUSES = ("%s", "%d", "%.2f", "%e", "%x", "%X", "%b", "%o", "%%", "%", "%q", "%.3e", "%.s", "%s %d", "a%sb%sc", "%.0f")
ZONES = ('"UTC"', '"America/New_York"', '"Europe/Berlin"', '"+05:30"', '"-08:00"', '"Nowhere/None"', '""', '"02:00"')

ARGUMENTS: dict[str, tuple[str, ...]] = {
    "cidr": NETWORKS,
    "containsCIDR": NETWORKS,
    "containsIP": ADDRESSES,
    "find": PATTERNS,
    "findAll": PATTERNS,
    "format": CLAUSES,
    "format.named": FORMATS,
    "ip": ADDRESSES,
    "ip.isCanonical": ADDRESSES,
    "isCIDR": NETWORKS,
    "isIP": ADDRESSES,
    "isQuantity": QUANTITIES,
    "isSemver": VERSIONS,
    "isURL": URLS,
    "matches": PATTERNS,
    "quantity": QUANTITIES,
    "semver": VERSIONS,
    "url": URLS,
    "validate": FORMATTED,
}
"""Texts that a function's last argument of type string is mostly taken from; of ``format``, its receiver."""

PATHS: dict[str, tuple[str, ...]] = {
    "bool": ("mig", "healthy", "rdma"),
    "int": ("index", "numa", "linkSpeed"),
    "string": ("model", "architecture", "uuid", "ip"),
    "kubernetes.Semver": ("cudaComputeCapability", "driverVersion"),
    "kubernetes.Quantity": ("memory", "cores", "bandwidth", "vfs", "huge", "tiny"),
}
"""Names of attributes by the type that they mostly have; of type Quantity, names of capacities."""
DOMAINS = ("gpu.example.com",) * 6 + ("nic.example.com", "fabric.example.com", "nosuch.example.com")

FIXED = (
    "dyn(9007199254740993) == 9007199254740992.0",
    "dyn(9007199254740992.0) == 9007199254740993",
    "dyn(9223372036854775807) == 9223372036854775808.0",
    "dyn(9223372036854775807) >= 9223372036854775808.0",
    "dyn(18446744073709551615u) == 18446744073709551616.0",
    "dyn(18446744073709551615u) < 18446744073709551616.0",
    "9007199254740993 < dyn(9007199254740992.0)",
    "dyn(9007199254740993) in [9007199254740992.0]",
    "{9007199254740993: 1}[dyn(9007199254740992.0)] == 1",
    "[9007199254740993, 1] == dyn([9007199254740992.0, 1.0])",
    'quantity("1.5Ti").add(5).isGreaterThan(quantity("1.5Ti"))',
    'device.capacity["gpu.example.com"].memory.isGreaterThan(device.capacity["gpu.example.com"].memory.sub(5))',
    'device.capacity["gpu.example.com"].memory.add(5).isGreaterThan(device.capacity["gpu.example.com"].memory)',
    'cel.bind(m, quantity("1.5Ti"), m.add(5).isGreaterThan(m))',
    'cel.bind(m, quantity("1.5Ti"), m.sub(m).sign(m) == 0)',
    'cel.bind(m, quantity("1.5Ti"), sign(m.sub(m)) == sign(m))',
    'quantity("1.5Ti").add(quantity("5")) == quantity("1649267441669")',
    'quantity("1.5Ti").add(5).asInteger() == 1649267441669',
    "{[1]: 2}.size() == 1",
    '{{"a": 1}: 2}.size() == 1',
    "{dyn([1]): 2}.size() == 1",
    "{dyn({}): 2}.size() == 1",
    "{dyn(null): 2}.size() == 1",
    "{dyn(type(1)): 2}.size() == 1",
    "{dyn(b'a'): 2}.size() == 1",
    "{1.5: 2}.size() == 1",
    "{dyn(1.5): 2}[1.5] == 2",
    "{1: 'a', 1u: 'b'}.size() == 2",
    "{'a': 1, 'a': 2}.size() == 1",
    *(
        f'device.driver.matches(r"{pattern}")'
        for pattern in (
            *(r"\p{greek}", r"\p{Greek}", r"\p{GREEK}", r"\p{latin}", r"\p{lu}", r"\p{LU}", r"\p{L}", r"\p{l}", r"\PN"),
            *(
                r"\p{^Greek}",
                r"\p{Any}",
                r"\p{any}",
                r"\p{ascii}",
                r"\p{Nosuch}",
                r"\p{Han}",
                r"\p{Old_Italic}",
                r"\p{olditalic}",
            ),
            *(
                r"\p{Lowercase_Letter}",
                r"\p{Letter}",
                r"\p{letter}",
                r"\p{Script=Greek}",
                r"\p{Cn}",
                r"\p{LC}",
                r"\p{Assigned}",
            ),
            *(r"(?i)\p{Lu}", r"[\p{Greek}a-z]", r"[^\p{L}]", r"\p{old italic}", r"\p{Old-Italic}", r"\pGreek", r"\p{}"),
        )
    ),
    *(
        f"google.protobuf.Any{{type_url: 'type.googleapis.com/google.protobuf.{name}', value: b'{data}'}} == {value}"
        for name, data, value in (
            ("Int64Value", "\\x08\\x05", "5"),
            ("Int64Value", "\\x08\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01", "-1"),
            ("Int32Value", "\\x08\\x05", "5"),
            ("UInt64Value", "\\x08\\x05", "5u"),
            ("UInt32Value", "\\x08\\x05", "5u"),
            ("BoolValue", "\\x08\\x01", "true"),
            ("BoolValue", "", "false"),
            ("StringValue", "\\x0a\\x01a", "'a'"),
            ("StringValue", "\\x0a\\x01\\xff", "'a'"),
            ("StringValue", "\\x0a\\x05a", "'a'"),
            ("BytesValue", "\\x0a\\x01a", "b'a'"),
            ("DoubleValue", "\\x09\\x00\\x00\\x00\\x00\\x00\\x00\\xf8\\x3f", "1.5"),
            ("FloatValue", "\\x0d\\x00\\x00\\xc0\\x3f", "1.5"),
            ("Duration", "\\x08\\x3c", "duration('1m')"),
            ("Timestamp", "\\x08\\x3c", "timestamp(60)"),
            ("Value", "\\x1a\\x01a", "'a'"),
            ("Value", "\\x20\\x01", "true"),
            ("Value", "\\x08\\x00", "null"),
            ("Value", "", "null"),
            ("ListValue", "\\x0a\\x03\\x1a\\x01a", "['a']"),
            ("Struct", "\\x0a\\x08\\x0a\\x01k\\x12\\x03\\x1a\\x01a", "{'k': 'a'}"),
            ("Empty", "", "google.protobuf.Empty{}"),
            ("Any", "", "1"),
            ("Nosuch", "", "1"),
            ("Int64Value", "\\x08", "5"),
            ("Int64Value", "\\x10\\x07\\x08\\x05", "5"),
        )
    ),
    "google.protobuf.Any{} == null",
    "google.protobuf.Any{type_url: 'x'} == 1",
    "google.protobuf.Any{type_url: 'google.protobuf.Int64Value', value: b'\\x08\\x05'} == 5",
    "google.protobuf.Any{type_url: '/google.protobuf.Int64Value', value: b'\\x08\\x05'} == 5",
    "type(google.protobuf.Any{type_url: 'x.y/google.protobuf.Int64Value', value: b'\\x08\\x05'}) == int",
    'authorizer.path("/healthz").check("get").allowed()',
    '[1][?device.attributes["gpu.example.com"].index].hasValue()',
    'dyn([1])[?"a"].hasValue()',
    "dyn([1])[?device.driver].hasValue()",
    'dyn("a").check("get").allowed()',
    'dyn(1).fieldSelector("a").labelSelector(device.driver).check("x").allowed()',
    '[dyn(1).path("a")].exists(x, x.check("get").allowed())',
    'has(device.attributes["gpu.example.com"].`model`)',
    'device.attributes["gpu.example.com"].?`mo-del/x.y`.hasValue()',
    "google.protobuf.Int64Value{`value`: 1} == 1",
    "[1].`exists`(x, x == 1)",
    '[dyn("a"), dyn(semver("1.0.0"))].transformMapEntry(x, k, {k: x}).size() > 0',
    'cidr("192.168.0.1/16").containsCIDR(device.attributes["gpu.example.com"].index.value())',
    'cidr("192.168.0.1/16").containsCIDR(device.attributes["gpu.example.com"].index)',
    "dyn(1/0).findAll(dyn(1)) == []",
    "dyn(1/0).format(dyn([1])) == ''",
    "cel.bind(x, device.capacity, has(x.a))",
    "optional.of(device.attributes).optMap(x, has(x.a)).orValue(false)",
    "optional.of(dyn(1).orValue(2)).hasValue()",
)
"""Expressions for what no generator finds by chance."""
