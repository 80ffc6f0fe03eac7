from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from _pytest.nodeid import coerce_node_id
from hypothesis import settings

from tests.browser import browser as browser
from tests.browser import chromium as chromium
from tests.controlplane.fixtures import pytest_terminal_summary  # noqa: F401

# Looking for garbage takes a third of the time in which 20,000 tests are collected, and there is none.
gc.disable()

# Tests read and write each example many times: in C that takes a tenth of the time.
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # type: ignore[misc]
yaml.SafeDumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # type: ignore[misc]

# Parallel test workers are told a width of their own; what a command prints into a pipe must not depend on it.
os.environ.pop("COLUMNS", None)
os.environ.pop("LINES", None)

# A shell that starts the tests in the background has them ignore Ctrl-C, and so all programs that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A program that outlives its terminal (nohup) ignores the end of it, and so would they.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How long an example takes says more of the machine than of the code.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

HERE = Path(__file__).parent
LIVE, BROWSER, PACKAGING = "control_plane_program", "chromium", "offline"
"""The fixtures that all tests of a kind use, directly or through others."""
NOT_QUICK = ("live", "browser", "packaging", "slow")
ELSEWHERE = ("ci/", "controlplane/", "packaging/")
"""Folders of which every test needs more than Python."""
SLOW = (
    "admission/server/test_names.py::test_each_format",
    "admission/server/test_recorded.py",
    "allocation/test_pruning.py",
    "api/test_new_field.py",
    "api/test_quantity.py",
    "cel/test_cel_python.py",
    "cel/test_closures.py::test_deep",
    "cel/test_closures.py::test_the_cost_limit",
    "cel/test_columns.py::test_a_step",
    "cel/test_columns.py::test_fast_paths",
    "cel/test_columns.py::test_grouped",
    "cel/test_conformance.py",
    "cel/test_constants.py::test_all_that_fails",
    "cel/test_cost.py",
    "cel/test_many_devices.py",
    "cli/test_bad_input.py",
    "cli/test_bounded.py",
    "cli/test_can.py",
    "cli/test_canary.py",
    "cli/test_claims.py::test_examples",
    "cli/test_devices.py::test_examples",
    "cli/test_devices.py::test_many",
    "cli/test_explain_listed.py",
    "cli/test_explain_more.py",
    "cli/test_explain_pending.py",
    "cli/test_explain_targets.py::test_no_claim",
    "cli/test_explain_targets.py::test_pages_of",
    "cli/test_explain_with_node.py",
    "cli/test_hostile_arguments.py",
    "cli/test_hostile_names.py",
    "cli/test_jsonpath.py",
    "cli/test_lint_bad_input.py",
    "cli/test_lists.py",
    "cli/test_migrate_helm.py",
    "cli/test_migrate_terminal.py",
    "cli/test_namespaces.py",
    "cli/test_pasted.py::test_commands_ask",
    "cli/test_pasted.py::test_kubectl",
    "cli/test_pasted.py::test_our_own_run",
    "cli/test_pasted.py::test_what_pages",
    "cli/test_snapshot_ring.py",
    "cli/test_streams.py",
    "cli/test_taint.py",
    "cli/test_top.py::test_devices_that",
    "cli/test_top.py::test_examples",
    "cli/test_top.py::test_lines",
    "cli/test_top.py::test_so_many",
    "cli/test_top.py::test_the_most_that",
    "cli/test_usage.py::test_help_breaks",
    "cli/test_usage.py::test_top_takes",
    "cli/test_with_node.py",
    "cluster/test_anonymize.py",
    "cluster/test_cluster.py::test_a_layered",
    "cluster/test_cluster.py::test_any_changes",
    "cluster/test_faults.py",
    "cluster/test_files.py",
    "cluster/test_kubeconfig.py::test_an_auth_provider",
    "cluster/test_live.py",
    "cluster/test_pages.py",
    "cluster/test_pod_lists.py::test_statuses_that",
    "cluster/test_pod_lists.py::test_what_was_read",
    "cluster/test_reader.py::test_claims_as",
    "cluster/test_reader.py::test_devices_as",
    "cluster/test_reader.py::test_nodes_as",
    "cluster/test_round_trips.py",
    "cluster/test_save.py",
    "cluster/test_socks.py",
    "cluster/test_tls.py",
    "cluster/test_watch.py",
    "completion/",
    "conformance/",
    "docs/",
    "examples/",
    "explain/test_alike.py",
    "explain/test_applied_again.py",
    "explain/test_carried_out.py",
    "explain/test_cases.py::test_case[search-too-slow",
    "explain/test_catalogue.py::test_pages_in_docs",
    "explain/test_further_causes.py",
    "explain/test_gates.py",
    "explain/test_many_nodes.py",
    "explain/test_next_step.py::test_it_leads",
    "explain/test_node_state.py",
    "explain/test_node_texts.py",
    "explain/test_noise.py",
    "explain/test_nothing_unproved.py",
    "explain/test_on_nodes.py",
    "explain/test_outputs.py",
    "explain/test_reads.py",
    "explain/test_released.py",
    "explain/test_rivals.py",
    "explain/test_sharing.py",
    "explain/test_under_way.py",
    "explain/test_unmodelled.py",
    "explain/test_way.py",
    "fit/test_agrees.py",
    "fit/test_chance.py::test_nodes",
    "fit/test_daemon_set.py",
    "fit/test_existing.py",
    "fit/test_explained.py::test_deployments",
    "fit/test_hostile_workloads.py",
    "fit/test_new_nodes.py",
    "fit/test_sharing.py",
    "fuzz/test_fuzz.py",
    "golden/",
    "hostile/",
    "lint/test_broken.py",
    "lint/test_kustomized.py",
    "lint/test_verify.py",
    "lint/test_workers.py",
    "lsp/test_hover_text.py",
    "lsp/test_names.py",
    "lsp/test_neovim.py",
    "lsp/test_parameters.py",
    "lsp/test_server.py",
    "lsp/test_wire.py",
    "manifests/test_edits.py::test_changes_in_a_long",
    "manifests/test_edits.py::test_the_smallest_changes",
    "manifests/test_objects.py::test_the_same",
    "manifests/test_values.py::test_json_is",
    "metrics/test_bounds.py",
    "metrics/test_follow.py",
    "metrics/test_layers.py",
    "metrics/test_same_answers.py",
    "metrics/test_serving.py",
    "migrate/charts/",
    "migrate/test_affinity.py",
    "migrate/test_kustomize.py",
    "migrate/test_labels_as_nodes_have_them.py",
    "migrate/test_odd_fields.py",
    "migrate/test_overlays.py",
    "migrate/test_placement.py",
    "migrate/test_plans.py",
    "migrate/test_properties.py",
    "migrate/test_quotas.py",
    "migrate/test_real.py",
    "migrate/test_reverse.py",
    "migrate/test_said_and_written.py",
    "migrate/test_told_as_changes.py",
    "migrate/test_vendors.py",
    "migrate/test_versions.py",
    "monitoring/",
    "neighbours/test_absent.py",
    "neighbours/test_compute_domains.py::test_json",
    "neighbours/test_kueue_controller.py",
    "neighbours/test_malformed.py",
    "neighbours/test_same_cause.py",
    "report/html/",
    "report/test_bars.py::test_commands_draw",
    "report/test_explain_brief.py",
    "report/test_explain_json.py",
    "report/test_explain_text.py",
    "report/test_left_out.py",
    "report/test_lint_reports.py::test_sarif_has_no_more",
    "report/test_remedy_json.py",
    "scheduling/test_gang_placement.py::test_what_cannot",
    "scheduling/test_outcome.py::test_asking",
    "scheduling/test_outcome.py::test_claims_alone",
    "taint/test_deadline.py",
    "taint/test_steady_watches.py",
    "test_clocks.py",
    "test_dependencies.py",
    "test_k9s.py",
    "test_limited_fork.py",
    "test_readme.py",
    "test_releases.py::test_what_messages_say",
    "ui/test_command.py",
    "ui/test_keys.py",
    "ui/test_pages.py",
    "ui/test_tables.py",
    "unread/",
    "usage/test_claim_use.py",
)
"""Files, folders and tests that make check leaves out: they take seconds, start processes, or repeat a corpus."""
MANY_CASES, STRIDE = 24, 6
"""Of a test with more cases than that many, make check runs every sixth."""
SAMPLED = {
    "docs/test_site.py::test_pages_fit_and_ask_nobody_else": 2,
    "examples/test_with_node.py::test_what_an_error_proposes_can_be_used": 3,
    "explain/test_applied_again.py::test_all_subjects_of_examples": 3,
    "explain/test_further_causes.py::test_both_causes_are_named": 3,
    "explain/test_nothing_unproved.py::test_without_proofs": 3,
    "golden/test_golden.py::test_nothing_is_lost_at_any_width": 2,
    "hostile/test_commands.py::test_a_bad_answer": 2,
    "hostile/test_commands.py::test_a_slow_answer": 2,
    "migrate/charts/test_charts.py::test_a_chart_renders_what_migrate_makes_of_its_rendering": 3,
    "migrate/test_kustomize.py::test_case": 2,
    "migrate/test_overlays.py::test_shape": 2,
    "neighbours/test_malformed.py::test_a_malformed_object_is_one_that_was_not_read": 3,
    "unread/test_absence.py::test_nothing_unread_is_called_absent": 2,
    "unread/test_parts.py::test_a_pod_or_claim_of_a_part_is_as_in_the_whole_or_undetermined": 2,
    "unread/test_parts.py::test_no_note_is_repeated": 3,
    "unread/test_parts.py::test_what_waits_in_a_part_waits_in_the_whole": 2,
    "unread/test_unread.py::test_absent_from_the_files_of_other_examples": 3,
    "unread/test_unread.py::test_each_kind_forbidden_by_the_server": 2,
    "unread/test_unread.py::test_lists_of_all_examples": 3,
}
"""Tests whose cases take a minute and more together: make test runs one in so many, make exhaustive the others."""
SOURCE = (
    "cluster/test_moment.py::test_only_these",
    "test_dependencies.py",
    "test_layers.py",
    "test_one_scheduler.py",
    "test_releases.py::test_releases_are",
    "test_whole_numbers.py::test_no_other",
)
"""Tests that read the whole source: in one process, they parse it once."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run the tests of that mark as well, and without limit")
    parser.addoption("--quick", action="store_true", help="run only tests that are quick and need nothing but Python")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--quick``, files and folders that have no quick test are not even read."""
    if not config.getoption("--quick") or not collection_path.is_relative_to(HERE):
        return None
    name = collection_path.relative_to(HERE).as_posix() + ("/" if collection_path.is_dir() else "")
    return name in (*SLOW, *ELSEWHERE) or name.endswith("/live/") or None


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    # Tests leave little in circles: looking after each 700 objects takes a tenth of the time.
    gc.set_threshold(100_000, 50, 100)
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks tests by what they need, so that a new one is marked without being told."""
    _mark_beyond_the_sample(items)
    whole = [item for item in items if item.get_closest_marker("exhaustive")]
    if not config.getoption("--exhaustive"):
        config.hook.pytest_deselected(items=whole)
        items[:] = [item for item in items if item not in whole]
    for item in whole:
        item.add_marker(pytest.mark.timeout(0))
    _mark(items)
    if config.getoption("--quick"):
        left = {item for item in items if any(item.get_closest_marker(mark) for mark in NOT_QUICK)}
        left |= _beyond_the_sample([item for item in items if item not in left])
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]
    if config.getoption("loadgroup", default=False):
        _name_groups(items)


def _mark_beyond_the_sample(items: Iterable[pytest.Item]) -> None:
    """Of tests that are sampled, the other cases are for ``make exhaustive``."""
    for name, cases in _cases(items).items():
        taken = cases[:: SAMPLED.get(name.removeprefix("tests/"), 1)]
        for item in cases:
            if item not in taken:
                item.add_marker("exhaustive")


def _beyond_the_sample(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Of each test with many cases, all but every sixth: a table that is broken as a whole fails in these as well."""
    many = (cases for cases in _cases(items).values() if len(cases) > MANY_CASES)
    return {case for cases in many for case in set(cases) - set(cases[::STRIDE])}


def _cases(items: Iterable[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The cases of each test."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return cases


def _mark(items: Iterable[pytest.Item]) -> None:
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        folders = item.path.relative_to(HERE).parts
        if LIVE in fixtures or "live" in folders or folders[0] == "controlplane":
            item.add_marker("live")
        if BROWSER in fixtures:
            item.add_marker("browser")
        if PACKAGING in fixtures or folders[0] in ("packaging", "ci"):
            item.add_marker("packaging")
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker("slow")
        if item.nodeid.removeprefix("tests/").startswith(SOURCE):
            item.add_marker(pytest.mark.xdist_group("source"))


def _name_groups(items: Iterable[pytest.Item]) -> None:
    """Appends its group to the name of each test, by which pytest-xdist runs a group in one process.

    Its version 3.8 does so in an attribute that pytest 9.2 does not read, and before the groups above are known.
    """
    for item in items:
        for mark in item.iter_markers("xdist_group"):
            item._id = coerce_node_id(f"{item.nodeid}@{mark.args[0]}")
