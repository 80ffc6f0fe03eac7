"""However large a cluster is, its metrics are few, and nothing is lost in their sums."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import add

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric

from kubectl_dra.cluster.time_read import Moment
from kubectl_dra.metrics.exposition import fleet_families, text_of
from kubectl_dra.metrics.fleet import DEVICE_STATES, MOST_GROUPS, OTHERS, FleetCounts, Waiting, bounded
from kubectl_dra.usage.choices import ClaimState
from kubectl_dra.usage.largest_request import LargestRequest

MOST_SERIES = 12_000
"""Of all metrics together, process and watches included."""
IDENTIFYING = {"pod", "claim", "device", "node", "uid", "owner", "name"}
MANY = 3_000


def vast() -> FleetCounts:
    """A cluster with thousands of everything that can be a label."""
    spaces = [f"team-{number}" for number in range(MANY)]
    drivers = [f"gpu-{number}.example.com" for number in range(MANY)]
    pools = [f"pool-{number}" for number in range(MANY)]
    return FleetCounts(
        Moment(datetime(2026, 11, 1, tzinfo=UTC), saved=False),
        devices={(drivers[n], pools[n], state): n for n in range(MANY) for state in DEVICE_STATES},
        class_devices={(f"class-{n}", drivers[n], pools[n], state): n for n in range(MANY) for state in DEVICE_STATES},
        largest={f"class-{n}": LargestRequest(n % 9) for n in range(MANY)},
        fits={(f"class-{n}", size): n for n in range(MANY) for size in "1248"},
        pods={(space, f"cause-{n % 150}", "cannot-be-scheduled"): Waiting(1, 5.0) for n, space in enumerate(spaces)},
        lone_claims={(space, "cause", "cannot-be-scheduled"): Waiting(1, 5.0) for space in spaces},
        claims={(space, state.value): 1 for space in spaces for state in ClaimState},
        held={(space,): 3 for space in spaces},
        idle={(space,): 1 for space in spaces},
        drivers={(driver, "healthy"): 7 for driver in drivers},
        unhealthy={(driver,): 1 for driver in drivers},
        evicted={(space,): 1 for space in spaces},
        unread={("Pod", "forbidden"): 1},
    )


def of(name: str, fleet: FleetCounts) -> Metric:
    return next(family for family in fleet_families(fleet) if family.name == f"kubectl_dra_{name}")


def test_a_vast_cluster_has_few_series() -> None:
    families = list(fleet_families(vast()))
    assert sum(len(family.samples) for family in families) < MOST_SERIES
    for family in families:
        groups = {tuple(value for name, value in one.labels.items() if name != "state") for one in family.samples}
        assert len(groups) <= MOST_GROUPS, family.name
        assert len({tuple(sorted(one.labels.items())) for one in family.samples}) == len(family.samples)
        assert not IDENTIFYING & {name for one in family.samples for name in one.labels}


def test_sums_stay() -> None:
    fleet = vast()
    assert fleet.devices is not None
    assert sum(one.value for one in of("devices", fleet).samples) == sum(fleet.devices.values())
    assert sum(one.value for one in of("pending_pods", fleet).samples) == MANY
    assert any(one.labels["namespace"] == OTHERS for one in of("pending_pods", fleet).samples)
    # What is largest anywhere is largest among the others.
    assert max(one.value for one in of("device_class_largest_request", fleet).samples) == 8


def test_a_scrape_of_it_is_text() -> None:
    assert text_of(vast()).count("\n") < MOST_SERIES


LABEL = st.sampled_from([f"l{number}" for number in range(12)])


@given(st.dictionaries(st.tuples(LABEL, LABEL, LABEL), st.integers(0, 99), max_size=300), st.integers(1, 40))
def test_bounded(table: dict[tuple[str, ...], int], most: int) -> None:
    found = bounded(table, add, float, most)
    assert len(found) <= most
    assert sum(found.values()) == sum(table.values())
    if len(table) <= most:
        assert found == table


def test_what_is_large_keeps_its_name() -> None:
    table: dict[tuple[str, ...], int] = {(f"n{number}",): number for number in range(100)}
    found = bounded(table, add, float, 10)
    assert found[("n99",)] == 99 and (OTHERS,) in found
