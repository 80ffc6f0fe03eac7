from __future__ import annotations

import pytest

from kubectl_dra.api.releases import (
    LIFECYCLES,
    PLURALS,
    Release,
    default_features,
    default_version,
    gate_default,
    gate_locked,
    known_gates,
    lifecycle,
    parse_release,
    versions_of,
)


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("1.36", Release(1, 36)),
        ("v1.36.2", Release(1, 36, 2)),
        ("v1.36.2+k3s1", Release(1, 36, 2)),
        ("v1.35.0-eks-abc123", Release(1, 35)),
        ("v1.34.1-gke.1234000", Release(1, 34, 1)),
        ("1.36+", Release(1, 36)),
        (" v1.37.0-alpha.1 ", Release(1, 37)),
    ],
)
def test_parse_release(text: str, release: Release) -> None:
    assert parse_release(text) == release


@pytest.mark.parametrize("text", ["", "1", "v1", "latest", "1.x", "1.36 or so", "-1.36"])
def test_parse_release_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes release"):
        parse_release(text)


def test_releases_order_by_number() -> None:
    assert Release(1, 9) < Release(1, 31) < Release(1, 31, 4) < Release(1, 32)
    assert Release(1, 36).at_least(36)
    assert not Release(1, 35, 9).at_least(36)
    assert Release(2, 0).at_least(36)


@pytest.mark.parametrize(
    ("kind", "minor", "versions", "default"),
    [
        ("ResourceClaim", 31, ("v1alpha3",), None),
        ("ResourceClaim", 32, ("v1beta1", "v1alpha3"), None),
        ("ResourceClaim", 33, ("v1beta2", "v1beta1", "v1alpha3"), None),
        ("ResourceClaim", 34, ("v1", "v1beta2", "v1beta1"), "v1"),
        ("ResourceClaim", 38, ("v1", "v1beta2"), "v1"),
        ("DeviceTaintRule", 32, (), None),
        ("DeviceTaintRule", 35, ("v1alpha3",), None),
        ("DeviceTaintRule", 36, ("v1beta2", "v1alpha3"), None),
        ("DeviceTaintRule", 37, ("v1", "v1beta2", "v1alpha3"), "v1"),
        ("PodSchedulingContext", 31, ("v1alpha3",), None),
        ("PodSchedulingContext", 32, (), None),
        ("ResourceClass", 30, ("v1alpha2",), None),
    ],
)
def test_versions_of(kind: str, minor: int, versions: tuple[str, ...], default: str | None) -> None:
    release = Release(1, minor)
    assert versions_of(kind, release) == versions
    assert default_version(kind, release) == default


def test_lifecycle_dates() -> None:
    beta = lifecycle("v1beta1", "ResourceClaim")
    assert beta is not None
    assert not beta.is_deprecated(Release(1, 34))
    assert beta.is_deprecated(Release(1, 35))
    assert beta.removed == 38
    assert not beta.served_by_default(Release(1, 36))
    assert lifecycle("v1", "PodSchedulingContext") is None


def test_every_kind_has_a_plural_and_one_entry_per_version() -> None:
    names = [(entry.version, entry.kind) for entry in LIFECYCLES]
    assert len(names) == len(set(names))
    assert {kind for _, kind in names} == set(PLURALS)
    for entry in LIFECYCLES:
        assert entry.removed is None or entry.introduced < entry.removed
        assert entry.deprecated is None or entry.removed is None or entry.deprecated < entry.removed


@pytest.mark.parametrize(
    ("gate", "states"),
    [
        ("DRAConsumableCapacity", (None, None, None, False, False, True, True)),
        ("DRAAdminAccess", (None, False, False, True, True, True, True)),
        ("DRADeviceTaintRules", (None, None, None, None, False, False, True)),
        ("DRAListTypeAttributes", (None, None, None, None, None, False, False)),
        ("DynamicResourceAllocation", (False, False, False, True, True, True, True)),
        ("DRAControlPlaneController", (False, None, None, None, None, None, None)),
    ],
)
def test_gate_defaults(gate: str, states: tuple[bool | None, ...]) -> None:
    for minor, state in zip(range(31, 38), states, strict=True):
        release = Release(1, minor)
        assert gate_default(gate, release) is state
        assert (gate in default_features(release)) is bool(state)


def test_gates_outside_the_table() -> None:
    assert gate_locked("DRAAdminAccess", Release(1, 36))
    assert not gate_locked("DRAPrioritizedList", Release(1, 36))
    assert default_features(Release(1, 45)) == default_features(Release(1, 37))
    assert len(default_features(Release(1, 31))) == 0
    assert all(gate_default(gate, Release(1, 37)) in (True, False, None) for gate in known_gates())
    with pytest.raises(KeyError):
        gate_default("NoSuchGate", Release(1, 36))
