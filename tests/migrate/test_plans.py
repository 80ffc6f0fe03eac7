"""Plans for whatever stands in a manifest: they never fail, and never leave half a migration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubectl_dra.api.releases import Release
from kubectl_dra.api.schema import FieldPath
from kubectl_dra.manifests.changes import changed, value_at
from kubectl_dra.manifests.workloads import SPECS, TEMPLATES, containers, known_kind, pod_specs
from kubectl_dra.migrate import other_kinds as elsewhere
from kubectl_dra.migrate import quotas
from kubectl_dra.migrate.codes import PAGES
from kubectl_dra.migrate.device_plugins import pod_rewrite as device_plugins
from kubectl_dra.migrate.model import MigrationSettings, ObjectPlan, PlanSurroundings
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, load

CATALOGUE: VendorCatalogue = load()
SETTINGS = MigrationSettings(CATALOGUE, Release(1, 36))
CHOICES = (
    SETTINGS,
    MigrationSettings(CATALOGUE, Release(1, 36), strategy="auto"),
    MigrationSettings(CATALOGUE, Release(1, 37), strategy="extended-resource"),
    MigrationSettings(CATALOGUE, Release(1, 34), strategy="extended-resource"),
    MigrationSettings(CATALOGUE, Release(1, 34), share="claim"),
)
PLANS = (device_plugins.plan, quotas.plan, elsewhere.plan)
CODES = {code for code in PAGES if code.startswith(("MIG1", "MIG2", "MIG4"))}

NAMES = st.sampled_from(
    ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "cpu", "example.org/x", "nvidia.com/gpu.shared", "")
)
AMOUNTS = st.one_of(st.none(), st.integers(-1, 40), st.sampled_from(("1", "2k", "0", "1.5", "$N", True, [], {})))
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), NAMES),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(st.sampled_from(("name", "spec", "limits", "env", "path")), inner, max_size=2),
    ),
    max_leaves=5,
)
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "limits": st.one_of(st.dictionaries(NAMES, AMOUNTS, max_size=3), JUNK),
        "requests": st.one_of(st.dictionaries(NAMES, AMOUNTS, max_size=3), JUNK),
        "claims": st.one_of(JUNK, st.just([{"name": "gpu"}])),
    },
)
CONTAINERS = st.lists(
    st.one_of(
        JUNK,
        st.fixed_dictionaries(
            {"resources": st.one_of(RESOURCES, RESOURCES, JUNK)},
            optional={
                "name": st.one_of(JUNK, st.sampled_from(("main", "side", "X_y"))),
                "restartPolicy": st.just("Always"),
                "env": st.one_of(JUNK, st.just([{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])),
                "securityContext": JUNK,
            },
        ),
    ),
    max_size=3,
)
SPEC = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "initContainers": CONTAINERS,
        "resourceClaims": st.one_of(JUNK, st.just([{"name": "gpu"}])),
        "tolerations": st.one_of(JUNK, st.just([{"operator": "Exists"}])),
        "nodeSelector": st.one_of(JUNK, st.just({"nvidia.com/gpu.family": "hopper"})),
        "volumes": JUNK,
        "runtimeClassName": st.one_of(JUNK, st.just("nvidia")),
    },
)
PODS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.one_of(JUNK, st.just({"name": "pod"}), st.just({"name": "pod"})),
        "spec": SPEC,
    }
)


GOOD = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(("main", "side", "x" * 63)),
            "resources": st.fixed_dictionaries(
                {
                    "limits": st.dictionaries(
                        st.sampled_from(("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "amd.com/gpu", "cpu")),
                        st.integers(0, 20),
                        max_size=3,
                    )
                },
                optional={"claims": st.just([{"name": "gpu"}])},
            ),
        },
        optional={"restartPolicy": st.just("Always")},
    ),
    max_size=4,
)
PODS_THAT_ASK = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Pod"),
        "metadata": st.just({"name": "pod"}),
        "spec": st.fixed_dictionaries(
            {"containers": GOOD, "initContainers": GOOD},
            optional={"resourceClaims": st.just([{"name": "gpu"}, {"name": "gpu-2"}])},
        ),
    }
)


@given(st.one_of(PODS, PODS_THAT_ASK), st.sampled_from(CHOICES))
def test_a_plan_is_made_of_anything(raw: dict[str, Any], settings: MigrationSettings) -> None:
    for plan in PLANS:
        found: ObjectPlan = plan(raw, PlanSurroundings((raw,)), settings)
        for step in found.steps:
            changed(raw, step.changes)
        codes = [said.code for said in found.steps] + [said.code for said in found.objects]
        codes += [said.code for said in found.notes] + [said.code for said in found.refusals]
        assert set(codes) <= CODES


@given(st.one_of(PODS, PODS_THAT_ASK))
def test_a_second_plan_has_nothing_to_change(raw: dict[str, Any]) -> None:
    found = device_plugins.plan(raw, PlanSurroundings(), SETTINGS)
    after = raw
    for step in found.steps:
        after = changed(after, step.changes)
    assert not device_plugins.plan(after, PlanSurroundings(), SETTINGS).steps


@given(PODS_THAT_ASK)
def test_every_reference_is_to_a_claim_and_request_that_is_added(raw: dict[str, Any]) -> None:
    found = device_plugins.plan(raw, PlanSurroundings(), SETTINGS)
    main = [step for step in found.steps if step.code == "MIG101"]
    assert len(main) == min(1, len(found.objects))
    if not main:
        return
    after = changed(raw, main[0].changes)
    requests = {
        new.raw["metadata"]["name"]: [one["name"] for one in new.raw["spec"]["spec"]["devices"]["requests"]]
        for new in found.objects
    }
    before = raw["spec"].get("resourceClaims") or []
    claims = {
        claim["name"]: claim["resourceClaimTemplateName"] for claim in after["spec"]["resourceClaims"][len(before) :]
    }
    assert sorted(claims.values()) == sorted(requests)
    used: set[tuple[str, str]] = set()
    for spec in pod_specs(after):
        for container in containers(spec):
            entries = value_at(container.content, ("resources", "claims"))
            mine = [one for one in entries or () if isinstance(one, dict) and one.get("name") in claims]
            assert len({one["name"] for one in mine}) == len(mine)
            for one in mine:
                names = requests[claims[one["name"]]]
                assert one.get("request", names[0]) in names
                used.update((one["name"], name) for name in ([one["request"]] if "request" in one else names))
    assert used == {(claim, name) for claim, template in claims.items() for name in requests[template]}
    assert all(len(names) == len(set(names)) for names in requests.values())


def placed() -> Iterator[Any]:
    """Each kind with the paths of its templates; patches of templates apart, which are left beside devices of these."""
    for key in sorted({*TEMPLATES, *SPECS}):
        paths = TEMPLATES.get(key, ())
        patches = tuple(path for path in paths if path[-1] == "patch")
        yield pytest.param(key, tuple(path for path in paths if path not in patches), id="/".join(key))
        if patches:
            yield pytest.param(key, patches, id=f"{'/'.join(key)} patches")


@pytest.mark.parametrize(("key", "templates"), list(placed()))
def test_every_kind_is_migrated_or_refused(key: tuple[str, str], templates: tuple[FieldPath, ...]) -> None:
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    raw: dict[str, Any] = {"apiVersion": f"{key[0]}/v1".lstrip("/"), "kind": key[1], "metadata": {"name": "x"}}
    for path in (*templates, *(SPECS[key][:1] if key in SPECS else ())):
        at: Any = raw
        steps = [*path, "spec"] if templates else list(path)
        for position, step in enumerate(steps):
            following: Any = [] if steps[position + 1 : position + 2] == ["*"] else {}
            if step == "*":
                at.append({})
                at = at[-1]
            else:
                at = at.setdefault(step, following)
        at["containers"] = [container]
    plans = [plan(raw, PlanSurroundings(), SETTINGS) for plan in PLANS]
    steps_found = [step for plan in plans for step in plan.steps]
    refusals = [refusal for plan in plans for refusal in plan.refusals]
    known = known_kind(raw)
    if known is not None and known.why and not known.partly:
        assert not steps_found
        assert {refusal.code for refusal in refusals} == {"MIG120"}
        return
    assert not refusals
    assert len(steps_found) == max(1, len(templates))
    after = raw
    for made in steps_found:
        after = changed(after, made.changes)
    assert "nvidia.com/gpu" not in str(value_at(after, ("spec", "containers")))
    notes = {note.code for plan in plans for note in plan.notes}
    assert ("MIG132" in notes) == (known is not None and bool(known.since))


def test_pods_without_requests_do_not_search_all_objects() -> None:
    class Unread(Sequence[Any]):
        def __getitem__(self, index: Any) -> Any:
            raise AssertionError("read")

        def __len__(self) -> int:
            raise AssertionError("counted")

    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "containers": [{"name": "c", "image": "a:1", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }
    assert device_plugins.plan(pod, PlanSurroundings(objects=Unread()), SETTINGS) == ObjectPlan()
