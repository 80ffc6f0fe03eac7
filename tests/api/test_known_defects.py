from __future__ import annotations

import pytest

from kubectl_dra.allocation.features import KnownDefects
from kubectl_dra.api.behaviour import ALL_FAILS_ON_ANY_POOL, CRASH_ON_ALL, RULES_UNSEEN
from kubectl_dra.api.releases import Release


@pytest.mark.parametrize(
    ("minor", "patch", "affected"),
    [(35, None, False), (36, 0, True), (36, 2, True), (36, 3, False), (36, None, None), (37, 0, False)],
)
def test_who_does_not_see_taint_rules(minor: int, patch: int | None, affected: bool | None) -> None:
    assert RULES_UNSEEN.affects(Release(1, minor), patch) is affected


def test_an_open_defect_has_no_end() -> None:
    assert ALL_FAILS_ON_ANY_POOL.affects(Release(1, 45), 3)
    with pytest.raises(KeyError):
        ALL_FAILS_ON_ANY_POOL.fixed_in(37)


def test_texts() -> None:
    assert RULES_UNSEEN.patches(36) == "1.36.0 to 1.36.2"
    assert CRASH_ON_ALL.patches(36) == "1.36.0 and 1.36.1"
    assert RULES_UNSEEN.fixed_in(36) == "1.36.3"
    assert RULES_UNSEEN.reference == "kubernetes/kubernetes#139651"


SINCE_1_36 = {
    "distinct_compares_nothing",
    "later_all_continues_with_first",
    "request_takes_share_twice",
    "shares_charge_nothing",
}


@pytest.mark.parametrize(
    ("release", "patch", "without"),
    [
        (Release(1, 34), 3, {"counter_slices_everywhere"}),
        (Release(1, 35), 3, {"distinct_compares_nothing"}),
        (Release(1, 36), None, SINCE_1_36),
        (Release(1, 36), 1, SINCE_1_36 - {"shares_charge_nothing"}),
        (Release(1, 36), 3, SINCE_1_36 | {"counters_leak"}),
        (Release(1, 36), 5, SINCE_1_36 | {"counters_leak", "counters_keyed_by_pool_name", "devices_of_claim_summed"}),
        (Release(1, 37), 0, set(KnownDefects.__struct_fields__) - {"all_fails_on_any_pool"}),
    ],
)
def test_defects_of_a_release(release: Release, patch: int | None, without: set[str]) -> None:
    defects = KnownDefects.of_release(release, patch)
    assert {name for name in KnownDefects.__struct_fields__ if not getattr(defects, name)} == without
