"""What holds for every file: only what has to change changes, it can be undone, and a second run finds nothing."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_dra.api.conversion import to_v1
from kubectl_dra.api.releases import default_features
from kubectl_dra.lint.check_file import Job
from kubectl_dra.lint.config import Selection
from kubectl_dra.lint.context import AssumedCluster
from kubectl_dra.lint.engine import lint
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MIGRATIONS
from kubectl_dra.migrate.model import MigratedFile
from tests.migrate.runs import NEWEST, assert_reversible, comments, run
from tests.migrate.writing import habits, written

SEEDS = st.integers(0, 2**32)
MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def _selectors(random: Random) -> list[Any]:
    expressions = ('device.driver == "a"', "device.attributes['a'].b > 1", "a: b # no comment", "x\ny")
    return [{"cel": {"expression": random.choice(expressions)}} for _ in range(random.randint(1, 2))]


def _request(random: Random, number: int) -> dict[str, Any]:
    name = f"r{number}"
    if random.random() < 0.2:
        return {"name": name, "firstAvailable": [{"name": "s", "deviceClassName": "a.example.com", "count": 2}]}
    fields: dict[str, Any] = {"name": name, "deviceClassName": random.choice(("gpu.example.com", "on", "1e3"))}
    if random.random() < 0.5:
        fields["selectors"] = _selectors(random)
    if random.random() < 0.5:
        fields["count"] = random.randint(1, 8)
    if random.random() < 0.3:
        fields["tolerations"] = [{"key": "a", "operator": "Exists"}]
    order = list(fields.items())
    random.shuffle(order)
    return dict(order)


def _claim(random: Random) -> dict[str, Any]:
    spec = {"devices": {"requests": [_request(random, number) for number in range(random.randint(1, 3))]}}
    head = {"apiVersion": f"resource.k8s.io/{random.choice(('v1beta1', 'v1alpha3'))}"}
    metadata = {"name": f"c{random.randrange(10**6)}"}
    if random.random() < 0.5:
        return {**head, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
    return {**head, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": spec}}


def _slice(random: Random) -> dict[str, Any]:
    version = random.choice(("v1beta1", "v1alpha3"))
    devices = []
    for number in range(random.randint(1, 3)):
        size = random.choice(("40Gi", "1", "2e3"))
        capacity = {"memory": size if version == "v1alpha3" else {"value": size}}
        basic = random.choice(({}, {"attributes": {"model": {"string": "A"}}}, {"capacity": capacity}))
        device = {"name": f"d{number}", "basic": basic}
        devices.append(device if random.random() < 0.7 else dict(reversed(device.items())))
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    return {
        "kind": "ResourceSlice",
        "apiVersion": f"resource.k8s.io/{version}",
        "metadata": {"name": f"s{random.randrange(10**6)}"},
        "spec": {"driver": "a.example.com", "nodeName": "n", "pool": pool, "devices": devices},
    }


def _other(random: Random) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "x\n# y\n", "b": "no"}}


def _workload(random: Random) -> dict[str, Any]:
    def container(number: int) -> dict[str, Any]:
        limits = {"nvidia.com/gpu": random.choice((1, 2, "1")), "cpu": "2"}
        limits = {key: limits[key] for key in limits if key != "cpu" or random.random() < 0.5}
        resources: dict[str, Any] = {"limits": limits}
        if random.random() < 0.3:
            resources = {"requests": dict(limits), **resources}
        order = list({"name": f"c{number}", "image": "a:1", "resources": resources}.items())
        random.shuffle(order)
        return dict(order)

    spec: dict[str, Any] = {"containers": [container(number) for number in range(random.randint(1, 2))]}
    if random.random() < 0.4:
        spec = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}], **spec}
    if random.random() < 0.4:
        spec["volumes"] = [{"name": "v", "emptyDir": {}}]
    metadata = {"name": f"w{random.randrange(10**6)}", "namespace": "n"}
    if random.random() < 0.3:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": body}


def _pod_with_source(random: Random) -> dict[str, Any]:
    entries = [{"name": f"g{number}", "source": {"resourceClaimTemplateName": "t"}} for number in range(2)]
    spec = {"resourceClaims": entries[: random.randint(1, 2)], "containers": [{"name": "a", "image": "b"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{random.randrange(10**6)}"}, "spec": spec}


MAKERS = (_claim, _slice, _workload, _pod_with_source, _other)


def file_of(seed: int, *, anchors: bool = False) -> tuple[list[Any], bytes]:
    """Some objects, and a file that holds them."""
    random = Random(seed)
    objects = [random.choice(MAKERS)(random) for _ in range(random.randint(1, 3))]
    return objects, written(objects, random, habits(random, anchors=anchors))


def migrated(data: bytes, **how: Any) -> MigratedFile | None:
    """The result of a file, of all migrations; None where nothing is said of it."""
    report = run(data, migrations=MIGRATIONS, unsafe=True, **how)
    assert not report.defects and not report.notes
    return report.files[0] if report.files else None


@MANY
@given(SEEDS)
def test_the_writer_of_these_tests_writes_what_it_is_given(seed: int) -> None:
    objects, data = file_of(seed, anchors=seed % 2 == 0)
    assert [document.object for document in read_documents(data, "f.yaml")] == objects


@MANY
@given(SEEDS)
def test_every_object_is_migrated_and_nothing_else(seed: int) -> None:
    objects, data = file_of(seed)
    result = migrated(data)
    if result is None:
        assert all(raw["kind"] == "ConfigMap" for raw in objects)
        return
    assert [item for item in result.items if item.sort in ("refusal", "offer")] == []
    assert result.text is not None
    documents = read_documents(result.text.data, "f.yaml")
    kept = iter(document.object for document in documents)
    for raw in objects:
        new = next(found for found in kept if _same_name(found, raw))
        if raw["apiVersion"].startswith("resource.k8s.io/"):
            assert to_v1(new) == to_v1(raw) and new["apiVersion"] == "resource.k8s.io/v1"
        elif raw["kind"] == "ConfigMap":
            assert new == raw
        else:
            assert '"nvidia.com/gpu": ' not in str(new["spec"]).replace("'", '"')
            assert _without_claims(new) == _without_claims(raw)


def _same_name(one: Any, other: Any) -> bool:
    return bool(one["kind"] == other["kind"] and one["metadata"] == other["metadata"])


def _without_claims(raw: Any) -> Any:
    """The object without anything of devices, for what must not change."""
    if isinstance(raw, dict):
        gone = ("resourceClaims", "claims", "nvidia.com/gpu", "tolerations")
        out = {key: _without_claims(value) for key, value in raw.items() if key not in gone}
        return {key: value for key, value in out.items() if value != {}}
    return [_without_claims(item) for item in raw] if isinstance(raw, list) else raw


@MANY
@given(SEEDS, st.booleans())
def test_edits_can_be_undone_and_keep_bytes_andcomments(seed: int, anchors: bool) -> None:
    _, data = file_of(seed, anchors=anchors)
    result = migrated(data)
    if result is None:
        return
    assert result.text is not None
    before, after = result.text.before, result.text.after
    assert_reversible(result)
    assert result.text.source.encode(before) == data
    assert result.text.data.startswith(b"\xef\xbb\xbf") == data.startswith(b"\xef\xbb\xbf")
    assert after.endswith("\n") == before.endswith("\n")
    if "\r\n" in before:
        assert after.count("\r\n") == after.count("\n")
    else:
        assert "\r" not in after
    assert not comments(before) - comments(after)


@MANY
@given(SEEDS, st.booleans())
def test_a_second_run_changes_nothing(seed: int, anchors: bool) -> None:
    _, data = file_of(seed, anchors=anchors)
    result = migrated(data)
    if result is None or result.text is None:
        return
    again = migrated(result.text.data)
    assert again is None or not again.changed


@MANY
@given(SEEDS)
def test_older_versions_and_back(seed: int) -> None:
    """A file in v1, as v1beta1, and as v1 again: each time every object is the same to the API server."""
    objects, data = file_of(seed)
    objects = [raw for raw in objects if raw["apiVersion"].startswith("resource.k8s.io/")]
    for version in ("v1", "v1beta1", "v1", "v1beta2"):
        report = run(data, version=version)
        assert not report.defects and not report.items("refusal") and not report.items("offer")
        for file in report.files:
            assert_reversible(file)
            assert file.text is not None
            data = file.text.data
        made = [document.object for document in read_documents(data, "f.yaml")]
        made = [raw for raw in made if raw["apiVersion"].startswith("resource.k8s.io/")]
        assert [to_v1(raw) for raw in made] == [to_v1(raw) for raw in objects]
        assert {raw["apiVersion"] for raw in made} <= {f"resource.k8s.io/{version}"}


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(SEEDS)
def test_lint_finds_nothing_new(seed: int) -> None:
    _, data = file_of(seed)
    result = migrated(data)
    if result is None or result.text is None:
        return
    before, after = _errors(data), _errors(result.text.data)
    assert set(after) <= set(before), (before, after)


def _errors(data: bytes) -> Counter[str]:
    """The codes of what lint finds wrong."""
    job = Job(AssumedCluster(NEWEST, default_features(NEWEST), None), Selection(("DRA",)))
    report = lint([Input("f.yaml", True, data)], job, 1)
    return Counter(f"{found.code} {found.message}" for found in report.findings if found.severity == "error")
