"""Formats of names: fixed examples, and properties of texts made up by hypothesis."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.admission.server import names
from kubectl_dra.admission.server.classes import is_extended_resource
from kubectl_dra.admission.server.model import INVALID, TOO_LONG
from kubectl_dra.admission.server.verdict import check as verdict_of
from kubectl_dra.api.releases import NEWEST_MODELLED, default_features

AT = ("spec", "x")


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (names.label_problems, ("a", "9a", "a-b", "a" * 63), ("", "-a", "a-", "A", "a.b", "a_b", "a" * 64, "a\n", "ü")),
        (names.subdomain_problems, ("a.b", "a" * 253, "1.2-3"), ("", ".a", "a..b", "a.-b", "A", "a" * 254, "a/b")),
        (
            names.label_key_problems,
            ("a", "A_b.c-d", "a.b/C", "a" * 63, "a" * 253 + "/b"),
            ("", "/a", "a/", "a/b/c", "A.b/c", "-a", "a" * 64, "a" * 254 + "/b", "a b"),
        ),
        (names.label_value_problems, ("", "a", "A_b.c-d", "a" * 63), ("-", "a/b", "a" * 64, " ", "a\n")),
        (names.generated(names.label_problems), ("a-", "a", "a" * 62 + "-"), ("-", "AB-", "a_-b")),
    ],
)
def test_examples(check: names.Format, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    assert [text for text in good if check(text)] == []
    assert [text for text in bad if not check(text)] == []


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("a", []),
        ("A9_", []),
        ("a.b/c", []),
        ("A.B/c", []),
        ("a/b/c", []),
        ("", [INVALID]),
        ("9a", [INVALID]),
        ("a-b", [INVALID]),
        ("a" * 33, [TOO_LONG]),
        ("-" * 33, [TOO_LONG, INVALID]),
        ("/a", [INVALID]),
        ("a/", [INVALID]),
        ("/", [INVALID, INVALID]),
        ("a" * 64 + "/b", [TOO_LONG]),
        ("a_b/c", [INVALID]),
        ("\u212a/c", []),
    ],
)
def test_names_of_attributes(text: str, reasons: list[str]) -> None:
    assert [one.reason for one in names.check_qualified(text, AT, ("bad", "long"))] == reasons


def test_a_full_name_needs_a_domain() -> None:
    assert [one.reason for one in names.check_fully_qualified("a", AT, ("bad", "long"))] == [INVALID]
    assert list(names.check_fully_qualified("a/b", AT, ("bad", "long"))) == []


@pytest.mark.parametrize("text", ["1.2.3", "0.0.0", "1.2.3-rc.1+b.01", "1.2.3--", f"1.2.{'9' * 90}", "1.0.0-0a"])
def test_versions(text: str) -> None:
    assert names.is_version(text)


@pytest.mark.parametrize("text", ["", "v1.2.3", "1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "1.2.3\n", "١.2.3"])
def test_no_versions(text: str) -> None:
    assert not names.is_version(text)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("example.com/gpu", True),
        ("gpu", False),
        ("", False),
        ("a.kubernetes.io/x", False),
        ("requests.a/b", False),
        ("Example.com/gpu", False),
        ("a/" + "b" * 63, True),
        ("a/" + "b" * 64, False),
    ],
)
def test_extended_resources(name: str, valid: bool) -> None:
    assert is_extended_resource(name) is valid


_texts = st.text(st.sampled_from("aZ09-._/ü\n ")) | st.from_regex(r"[a-c]([-.][a-c]){0,130}", fullmatch=True)
_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@given(_texts)
def test_each_format_implies_the_wider_one(text: str) -> None:
    if not names.label_problems(text):
        assert not names.subdomain_problems(text) and not names.label_value_problems(text)
    if not names.subdomain_problems(text):
        assert not names.label_key_problems(f"{text}/x")
    if text and not names.label_value_problems(text):
        assert not names.label_key_problems(text)


@given(st.lists(_labels, min_size=1, max_size=4))
def test_labels_make_subdomains_and_pools(parts: list[str]) -> None:
    assert not any(names.label_problems(part) for part in parts)
    joined = ".".join(parts)
    assert bool(names.subdomain_problems(joined)) == (len(joined) > 253)
    pool = "/".join(parts)
    assert [one.reason for one in names.check_pool(pool, AT, ("", "", ""))] == [TOO_LONG] * (len(pool) > 253)


@given(_texts)
def test_a_label_is_a_list_of_plain_characters(text: str) -> None:
    plain = re.fullmatch("[a-z0-9-]{1,63}", text) is not None and text[0] != "-" != text[-1]
    assert plain == (not names.label_problems(text))


@given(_texts)
def test_drivers_ignore_case(text: str) -> None:
    def reasons(name: str) -> list[str]:
        return [one.reason for one in names.check_driver(name, AT, ("missing", "bad", "long"))]

    assert reasons(text.lower()) == reasons(text) or not text.isascii()


@pytest.mark.parametrize("text", ["a" * 200_000 + "_", "a-" * 100_000, "a." * 100_000 + "_", "1" * 200_000 + "."])
def test_long_texts_take_no_time(text: str) -> None:
    for check in (names.label_problems, names.subdomain_problems, names.label_key_problems, names.label_value_problems):
        assert check(text)
    assert not names.is_version(f"1.2.3-{text}_")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpu", "must have a domain, as in 'example.com/gpu'"),
        ("nvidia.com/gpu/large", "must have one '/' only, between its domain and its name"),
        ("NVIDIA.com/gpu", "domain must be lower case letters, digits, '-' and '.'"),
        ("NVIDIA.com/gpu", "it has 'NVIDIA'"),
        ("nvidia.com/GPU Large", "it has ' '"),
        ("nvidia.com/-", "with a letter or digit at both ends"),
        ("requests.nvidia.com/gpu", "must not begin with 'requests.'"),
        ("gpu.kubernetes.io/gpu", "must not be under kubernetes.io/"),
        (f"{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 62}/gpu", "must have a domain of at most 244 characters"),
    ],
)
def test_what_is_wrong_with_the_name_of_an_extended_resource_is_said(name: str, told: str) -> None:
    spec = {"extendedResourceName": name}
    raw = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"}, "spec": spec}
    verdict = verdict_of(raw, release=NEWEST_MODELLED, features=default_features(NEWEST_MODELLED), namespaces={})
    assert verdict is not None
    (found,) = verdict.violations
    assert told in found.message
