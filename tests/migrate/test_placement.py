"""Where a pod may run, as what it claims: which selectors, what goes from the pod, what is said, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubectl_dra.api.releases import Release
from kubectl_dra.manifests.changes import changed
from kubectl_dra.migrate.device_plugins.labels import PREFERRED, TERMS
from kubectl_dra.migrate.device_plugins.placement import PlacementPlan, agreed, placement
from kubectl_dra.migrate.vendors.catalogue import load
from kubectl_dra.migrate.vendors.model import Resource
from tests.migrate.vendor_devices import chosen, of_driver

CATALOGUE = load()
RELEASE = Release(1, 36)
GPUS = frozenset(of_driver("gpu.nvidia.com")) - {"nvnomem", "mig1g", "mig2g", "mig1gme", "vfio"}


def resource(name: str = "nvidia.com/gpu", **more: Any) -> Resource:
    found = CATALOGUE.resource(name, **more)
    assert found is not None
    return found


def placed(spec: str | dict[str, Any], name: str = "nvidia.com/gpu", **annotations: str) -> PlacementPlan:
    raw = yaml.safe_load(spec) if isinstance(spec, str) else spec
    return placement(raw, resource(name, annotations=annotations), CATALOGUE, RELEASE, annotations)


def selecting(labels: dict[str, str], name: str = "nvidia.com/gpu") -> PlacementPlan:
    return placed({"nodeSelector": labels}, name)


def required(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def after(spec: dict[str, Any], made: PlacementPlan) -> Any:
    """The pod's spec after the changes."""
    return changed(spec, agreed(spec, [made]).changes)


PRODUCT = "nvidia.com/gpu.product"
MEMORY = "nvidia.com/gpu.memory"
FAMILY = "nvidia.com/gpu.family"
ZONE = expression("topology.kubernetes.io/zone", "In", "a")


# (labels of nodeSelector, devices that the claim admits)
SELECTED = [
    ({PRODUCT: "NVIDIA-A100-SXM4-80GB"}, {"a100-80"}),
    ({PRODUCT: "A100-SXM4-40GB"}, {"a100-40"}),
    ({PRODUCT: "NVIDIA-A100-80GB-PCIe"}, {"a100-pcie80"}),
    ({PRODUCT: "Tesla-T4"}, {"t4"}),
    ({PRODUCT: "NVIDIA-GeForce-RTX-4090"}, {"rtx"}),
    ({PRODUCT: "Quadro-RTX-60008000"}, {"quadro"}),
    ({FAMILY: "ada-lovelace"}, {"l4", "l40s", "rtx"}),
    ({FAMILY: "hopper"}, {"h100", "h200", "gh200"}),
    ({MEMORY: "81559"}, {"h100"}),
    ({"nvidia.com/gpu.compute.major": "7"}, {"t4", "v100", "quadro"}),
    (
        {"nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0"},
        {"a100-80", "a100-40", "a100-pcie", "a100-pcie80"},
    ),
    ({FAMILY: "ampere", MEMORY: "40960"}, {"a100-40", "a100-pcie"}),
]


@pytest.mark.parametrize(("labels", "devices"), SELECTED, ids=lambda value: " ".join(sorted(value)))
def test_labels_of_nvidia(labels: dict[str, str], devices: set[str]) -> None:
    spec = {"nodeSelector": {**labels, "disk": "ssd"}}
    made = placed(spec)
    assert not made.refusals and not made.notes and made.safety == "safe"
    assert chosen(made.selectors, GPUS) == devices & GPUS
    assert after(spec, made) == {"nodeSelector": {"disk": "ssd"}}
    assert len(made.reasons) == len(labels)


@pytest.mark.parametrize(
    "labels",
    [
        {"nvidia.com/cuda.driver-version.full": "580.126.20"},
        {
            "nvidia.com/cuda.driver-version.major": "580",
            "nvidia.com/cuda.driver.minor": "126",
            "nvidia.com/cuda.driver.rev": "20",
        },
        {"nvidia.com/cuda.driver-version.revision": "20"},
        {"nvidia.com/cuda.runtime-version.full": "13.0"},
        {"nvidia.com/cuda.runtime.major": "13", "nvidia.com/cuda.runtime-version.minor": "0"},
    ],
)
def test_versions_of_drivers(labels: dict[str, str]) -> None:
    made = selecting(labels)
    assert chosen(made.selectors, GPUS) == GPUS
    wrong = selecting({key: "5" + value for key, value in labels.items()})
    assert chosen(wrong.selectors, GPUS) == set()


def test_leading_zeros_of_versions_go() -> None:
    made = selecting({"nvidia.com/cuda.driver-version.full": "580.126.09"})
    assert made.selectors == ('device.attributes["gpu.nvidia.com"].driverVersion.compareTo(semver("580.126.9")) == 0',)


@pytest.mark.parametrize(
    ("given", "devices"),
    [
        (expression(PRODUCT, "In", "NVIDIA-L4", "NVIDIA-L40S"), {"l4", "l40s"}),
        (expression(PRODUCT, "In", "Quadro-RTX-60008000", "NVIDIA-L4"), {"l4", "quadro"}),
        (expression(PRODUCT, "NotIn", "NVIDIA-L4", "A100-SXM4-40GB"), GPUS - {"l4", "a100-40"}),
        (expression(PRODUCT, "NotIn", "Tesla-T4"), GPUS - {"t4"}),
        (
            expression(FAMILY, "NotIn", "ampere", "hopper", "blackwell"),
            GPUS & {"l4", "l40s", "rtx", "t4", "v100", "quadro"},
        ),
        (expression(MEMORY, "Gt", "81920"), {"gb300", "h200", "b200", "rtxpro", "gh200"}),
        (expression(MEMORY, "Gt", "81919"), {"gb300", "h200", "b200", "rtxpro", "gh200", "a100-80", "a100-pcie80"}),
        (expression(MEMORY, "Lt", "16384"), {"t4"}),
        (expression(MEMORY, "In", "16384", "15360"), {"v100", "t4"}),
        (expression(MEMORY, "NotIn", "16384"), GPUS - {"v100"}),
        (expression("nvidia.com/gpu.compute.major", "Gt", "8"), {"h100", "h200", "gh200", "gb300", "b200", "rtxpro"}),
        (expression("nvidia.com/gpu.compute.major", "Lt", "8"), {"t4", "v100", "quadro"}),
        (expression("nvidia.com/gpu.compute.major", "In", "7", "9"), {"t4", "v100", "quadro", "h100", "h200", "gh200"}),
        (expression("nvidia.com/gpu.compute.minor", "NotIn", "0"), None),
        (expression(PRODUCT, "Exists"), GPUS),
        (expression("nvidia.com/gpu.present", "Exists"), GPUS),
        (expression("nvidia.com/gpu.present", "In", "true"), GPUS),
        (expression("nvidia.com/gpu.present", "NotIn", "false"), GPUS),
        (expression("feature.node.kubernetes.io/pci-0302_10de.present", "In", "true"), GPUS),
    ],
    ids=lambda value: f"{value['key']} {value['operator']} {value.get('values')}" if isinstance(value, dict) else "",
)
def test_operators(given: dict[str, Any], devices: set[str] | None) -> None:
    spec = required([given])
    made = placed(spec)
    assert not made.refusals
    if devices is not None:
        assert chosen(made.selectors, GPUS) == devices & GPUS
    assert after(spec, made) == {}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        (expression(PRODUCT, "DoesNotExist"), "may not exist"),
        (expression("nvidia.com/gpu.present", "DoesNotExist"), "without the devices"),
        (expression("nvidia.com/gpu.present", "In", "false"), "without the devices"),
        (expression("nvidia.com/gpu.present", "NotIn", "true"), "without the devices"),
        (expression(PRODUCT, "Gt", "5"), "is not a number"),
        (expression(MEMORY, "Gt", "16Gi"), "than a whole number"),
        (expression(MEMORY, "Gt", "1", "2"), "than a whole number"),
        (expression(MEMORY, "In", "16Gi"), "16Gi is not"),
        (expression(MEMORY, "In", "-1"), "no label can have"),
        (expression(MEMORY, "In", ""), "an empty text"),
        (expression("nvidia.com/gpu.compute.major", "In", "8.0"), "8.0 is not"),
        (expression("nvidia.com/cuda.driver-version.full", "In", "580.x"), "580.x is not"),
        (expression("nvidia.com/cuda.driver-version.full", "Gt", "580"), "is not a number"),
        (expression(PRODUCT, "In"), "no value"),
        (expression(PRODUCT, "in", "NVIDIA-L4"), "no operator"),
        (expression(PRODUCT, "In", "{{ .Values.gpu }}"), "no label can have"),
        (expression(PRODUCT, "In", "$GPU"), "no label can have"),
        (expression(PRODUCT, "In", 'a" || true || "'), "no label can have"),
        ({"key": PRODUCT, "values": ["NVIDIA-L4"]}, "needs an operator"),
        ({"key": MEMORY, "operator": "In", "values": [16384]}, "texts as values"),
        (expression(PRODUCT, "In", "X-MIG-INVALID"), "not all alike"),
        (expression(PRODUCT, "In", "X-MIG-weird"), "form that is not known"),
        (expression(PRODUCT, "In", "X", "X-MIG-1g.5gb"), "different classes"),
        (expression(PRODUCT, "NotIn", "X-MIG-1g.5gb"), "which partitions are not wanted"),
        (expression("cloud.google.com/gke-gpu-partition-size", "NotIn", "1g.5gb"), "which partitions are not wanted"),
    ],
    ids=lambda value: (
        f"{value['key']} {value.get('operator')} {value.get('values')}" if isinstance(value, dict) else ""
    ),
)
def test_refusals(given: dict[str, Any], word: str) -> None:
    made = placed(required([given]))
    ((path, why, way_out),) = made.refusals
    assert path[-2:] == ("matchExpressions", 0)
    assert word in why and given["key"] in why and way_out
    assert not made.removed and not made.selectors


@pytest.mark.parametrize(
    ("labels", "device_class", "selectors"),
    [
        (
            {PRODUCT: "A100-SXM4-40GB-MIG-1g.5gb"},
            "mig.nvidia.com",
            (
                'device.attributes["gpu.nvidia.com"].productName.replace(" ", "-") in '
                '["A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB"]',
                'device.attributes["gpu.nvidia.com"].profile == "1g.5gb"',
            ),
        ),
        (
            {PRODUCT: "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me"},
            "mig.nvidia.com",
            (
                'device.attributes["gpu.nvidia.com"].productName.replace(" ", "-") == "NVIDIA-H100-80GB-HBM3"',
                'device.attributes["gpu.nvidia.com"].profile == "1g.10gb+me"',
            ),
        ),
        (
            {"cloud.google.com/gke-gpu-partition-size": "1g.5gb"},
            "mig.nvidia.com",
            ('device.attributes["gpu.nvidia.com"].profile == "1g.5gb"',),
        ),
    ],
)
def test_partitions_that_only_labels_tell(
    labels: dict[str, str], device_class: str, selectors: tuple[str, ...]
) -> None:
    made = selecting(labels)
    assert (made.device_class, made.selectors) == (device_class, selectors)
    # GKE makes nodes by its labels; those of feature discovery go.
    stays = "partition-size" in str(labels)
    assert after({"nodeSelector": labels}, made) == ({"nodeSelector": labels} if stays else {})


def test_several_profiles_in_one_expression() -> None:
    made = placed(
        required(
            [expression(PRODUCT, "In", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me")]
        )
    )
    assert made.device_class == "mig.nvidia.com"
    assert chosen(made.selectors, {"mig1g", "mig1gme", "mig2g"}) == {"mig1g", "mig1gme"}


def test_multiprocessors_are_a_matter_of_partitions() -> None:
    made = selecting({"nvidia.com/gpu.multiprocessors": "14"})
    assert made.device_class == "mig.nvidia.com"
    assert chosen(made.selectors, {"a100-80"}) == set()  # guarded: whole GPUs publish none


def test_a_label_of_the_whole_gpu_is_not_compared_with_a_partition() -> None:
    made = selecting({MEMORY: "40960", PRODUCT: "NVIDIA-A100-SXM4-40GB"}, "nvidia.com/mig-1g.5gb")
    assert len(made.selectors) == 1 and "productName" in made.selectors[0]
    assert (
        made.removed
        == placed({"nodeSelector": {PRODUCT: "NVIDIA-A100-SXM4-40GB", MEMORY: "1"}}, "nvidia.com/mig-1g.5gb").removed
    )
    assert [note for note in made.notes if note.key == MEMORY]


@pytest.mark.parametrize(
    "labels",
    [
        {PRODUCT: "NVIDIA-L4-SHARED"},
        {PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED"},
        {"nvidia.com/gpu.sharing-strategy": "time-slicing"},
        {"nvidia.com/gpu.replicas": "4"},
        {"nvidia.com/mps.capable": "true"},
        {"nvidia.com/mig.strategy": "mixed"},
        {"nvidia.com/device-plugin.config": "shared"},
        {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"},
        {"cloud.google.com/gke-max-shared-clients-per-gpu": "2"},
    ],
)
def test_settings_of_the_device_plugin_go_with_advice(labels: dict[str, str]) -> None:
    made = selecting(labels)
    assert made.safety == "unsafe" and made.notes and not made.refusals
    assert after({"nodeSelector": labels}, made) == {}


@pytest.mark.parametrize(
    "given",
    [
        expression("nvidia.com/gpu.sharing-strategy", "In", "none"),
        expression("nvidia.com/gpu.sharing-strategy", "NotIn", "mps"),
        expression("nvidia.com/mps.capable", "In", "false"),
        expression("nvidia.com/mps.capable", "DoesNotExist"),
        expression(PRODUCT, "NotIn", "NVIDIA-L4-SHARED"),
    ],
    ids=lambda given: f"{given['key']} {given['operator']}",
)
def test_not_to_share_is_what_a_claim_means(given: dict[str, Any]) -> None:
    made = placed(required([given]))
    assert made.safety == "safe" and not made.notes and not made.selectors and made.removed


@pytest.mark.parametrize(
    ("key", "noted"),
    [
        ("nvidia.com/gpu.count", True),
        ("nvidia.com/gpu.machine", True),
        ("nvidia.com/mig.config", True),
        ("nvidia.com/gpu.clique", True),
        ("nvidia.com/mig-1g.5gb.count", True),
        ("nvidia.com/gpu.deploy.driver", True),
        ("cloud.google.com/gke-accelerator", True),
        ("cloud.google.com/gke-spot", False),
        ("cloud.google.com/compute-class", False),
        ("kubernetes.azure.com/accelerator", False),
        ("accelerator", False),
        ("karpenter.k8s.aws/instance-gpu-name", False),
        ("eks.amazonaws.com/instance-gpu-count", False),
        ("k8s.amazonaws.com/accelerator", False),
        ("node.kubernetes.io/instance-type", False),
        ("kubernetes.io/hostname", False),
        ("topology.kubernetes.io/zone", False),
        ("example.org/team", False),
        ("amd.com/gpu.family", False),
    ],
)
def test_labels_that_stay(key: str, noted: bool) -> None:
    made = selecting({key: "x"})
    assert bool(made.notes) is noted
    assert made._replace(notes=(), kept=()) == PlacementPlan()


def test_the_selector_for_a_label_of_gke_is_told() -> None:
    (note,) = selecting({"cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}).notes
    assert note.advice.endswith('device.attributes["gpu.nvidia.com"].productName.matches("A100.*40GB")')


# --- several conditions ------------------------------------------------------------------------------


def test_a_device_label_beside_another_goes_alone() -> None:
    spec = required([ZONE, expression(PRODUCT, "In", "NVIDIA-L4")])
    made = placed(spec)
    assert chosen(made.selectors, GPUS) == {"l4"}
    assert after(spec, made) == required([ZONE])


def test_fields_stay() -> None:
    spec = required([expression(PRODUCT, "In", "NVIDIA-L4")])
    term = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"][0]
    term["matchFields"] = [expression("metadata.name", "In", "node-1")]
    left = after(spec, placed(spec))
    terms = left["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [expression("metadata.name", "In", "node-1")]}]


def test_what_stands_beside_an_affinity_that_goes_stays() -> None:
    spec = required([expression(PRODUCT, "In", "NVIDIA-L4")])
    spec["affinity"]["podAntiAffinity"] = {"x": 1}
    assert after(spec, placed(spec)) == {"affinity": {"podAntiAffinity": {"x": 1}}}


def test_terms_of_device_labels_become_one_selector() -> None:
    spec = required(
        [expression(PRODUCT, "In", "NVIDIA-L4")],
        [expression(FAMILY, "In", "hopper"), expression(MEMORY, "Gt", "81919")],
    )
    made = placed(spec)
    assert len(made.selectors) == 1
    assert chosen(made.selectors, GPUS) == GPUS & {"l4", "h200", "gh200"}
    assert after(spec, made) == {}


def test_a_term_that_is_always_true_leaves_nothing_to_select() -> None:
    spec = required([expression("nvidia.com/gpu.present", "Exists")], [expression(PRODUCT, "In", "NVIDIA-L4")])
    made = placed(spec)
    assert made.selectors == () and after(spec, made) == {}


def test_equal_terms_are_one() -> None:
    term = [expression(PRODUCT, "In", "NVIDIA-L4")]
    assert placed(required(term, term)).selectors == placed(required(term)).selectors


@pytest.mark.parametrize(
    "other",
    [
        [ZONE],
        [expression(FAMILY, "In", "hopper"), ZONE],
        [expression("nvidia.com/gpu.count", "Gt", "4")],
        [expression("nvidia.com/mig.strategy", "In", "single")],
        [],
    ],
    ids=["zone", "hopper and zone", "count", "setting", "empty"],
)
def test_terms_of_other_things_keep_all_of_them(other: list[dict[str, Any]]) -> None:
    spec = required([expression(PRODUCT, "In", "NVIDIA-L4")], other)
    made = placed(spec)
    assert made.selectors == () and made.removed == () and made.refusals == ()
    assert made.notes[0].key == PRODUCT


def test_a_class_that_only_one_term_wants_is_refused() -> None:
    mig = expression(PRODUCT, "In", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")
    for other in ([ZONE], [expression(PRODUCT, "In", "NVIDIA-L4")]):
        made = placed(required([mig], other))
        assert len(made.refusals) == 1 and not made.removed
    both = placed(required([mig], [expression(PRODUCT, "In", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me")]))
    assert both.device_class == "mig.nvidia.com"
    assert chosen(both.selectors, {"mig1g", "mig1gme", "mig2g"}) == {"mig1g", "mig1gme"}


def test_preferences_stay() -> None:
    preference = {"weight": 1, "preference": {"matchExpressions": [expression(PRODUCT, "In", "NVIDIA-L4")]}}
    spec = {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}}
    made = placed(spec)
    ((path, _, note),) = made.notes
    assert path[2:] == ("preferredDuringSchedulingIgnoredDuringExecution", 0, "preference", "matchExpressions", 0)
    assert "firstAvailable" in note
    assert made._replace(notes=(), kept=()) == PlacementPlan()
    older = placement(spec, resource(), CATALOGUE, Release(1, 33))
    assert "firstAvailable" not in older.notes[0].advice


def test_selectors_are_said_once() -> None:
    spec = required([expression(PRODUCT, "In", "NVIDIA-L4")]) | {"nodeSelector": {PRODUCT: "NVIDIA-L4"}}
    made = placed(spec)
    assert len(made.selectors) == 1 and after(spec, made) == {}


def test_limits_of_a_request() -> None:
    many = [f"NVIDIA-{number:050d}" for number in range(300)]
    assert "10240" in placed(required([expression(PRODUCT, "In", *many)])).refusals[0][1]
    terms = [expression(MEMORY, "Gt", str(number)) for number in range(33)]
    assert "32 selectors" in placed(required(terms)).refusals[0][1]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": None, "affinity": None},
        {"nodeSelector": [1], "affinity": "x"},
        {"affinity": {"nodeAffinity": []}},
        required(),
        {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [None, 7]}}
            }
        },
        {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [None, {"preference": 1}]}}},
        required([{"key": 7, "operator": "In", "values": "x"}]),
        {"containers": [None, {"resources": None}, {"resources": {"limits": None}}]},
    ],
)
def test_what_says_nothing(spec: dict[str, Any]) -> None:
    assert placed(spec) == PlacementPlan()


def test_a_value_that_is_no_text_is_refused() -> None:
    made = selecting({MEMORY: 16384})  # type: ignore[dict-item]
    assert "texts as values" in made.refusals[0][1]
    assert placed({"nodeSelector": {"zone": 1}}) == PlacementPlan()


# --- other vendors -----------------------------------------------------------------------------------


AMDS = {"amd", "amd-cpx", "amd-auto"}


@pytest.mark.parametrize(
    ("given", "devices"),
    [
        (expression("amd.com/gpu.product-name", "In", "AMD_Instinct_MI300X_OAM"), AMDS),
        (expression("amd.com/gpu.device-id", "In", "74a1"), AMDS),
        (expression("amd.com/gpu.device-id", "NotIn", "74a1"), set()),
        (expression("amd.com/gpu.vram", "In", "192G"), {"amd"}),
        (expression("amd.com/gpu.vram", "NotIn", "192G"), {"amd-cpx", "amd-auto"}),
        (expression("amd.com/gpu.cu-count", "In", "304"), {"amd"}),
        (expression("amd.com/gpu.cu-count", "Gt", "38"), {"amd"}),
        (expression("amd.com/gpu.cu-count", "Lt", "304"), {"amd-cpx", "amd-auto"}),
        (expression("amd.com/gpu.simd-count", "In", "1216"), {"amd"}),
        (expression("amd.com/gpu.driver-version", "In", "6.12.12"), AMDS),
        (expression("amd.com/gpu.compute-memory-partition", "In", "spx_nps1"), {"amd"}),
        (expression("amd.com/compute-memory-partition", "In", "spx_nps1"), {"amd"}),
        (expression("beta.amd.com/gpu.vram", "In", "192G"), {"amd"}),
        (expression("beta.amd.com/gpu.vram.192G", "Exists"), {"amd"}),
        (expression("beta.amd.com/gpu.vram.192G", "DoesNotExist"), {"amd-cpx", "amd-auto"}),
        (expression("feature.node.kubernetes.io/pci-0300_1002.present", "In", "true"), AMDS),
    ],
    ids=lambda value: f"{value['key']} {value['operator']}" if isinstance(value, dict) else "",
)
def test_labels_of_amd(given: dict[str, Any], devices: set[str]) -> None:
    spec = required([given])
    made = placed(spec, "amd.com/gpu")
    assert not made.refusals and after(spec, made) == {}
    assert chosen(made.selectors, AMDS) == devices


def test_a_partition_that_amd_calls_a_gpu_is_refused() -> None:
    made = selecting({"amd.com/gpu.compute-memory-partition": "cpx_nps4"}, "amd.com/gpu")
    assert "a partition of a GPU" in made.refusals[0][1]
    named = selecting({"amd.com/gpu.compute-memory-partition": "cpx_nps4"}, "amd.com/cpx_nps4")
    assert chosen(named.selectors, AMDS) == {"amd-cpx"}


@pytest.mark.parametrize("key", ["amd.com/gpu.family", "beta.amd.com/gpu.family", "amd.com/gpu.firmware"])
def test_labels_of_amd_that_stay(key: str) -> None:
    made = selecting({key: "AI"}, "amd.com/gpu")
    assert made.notes and made._replace(notes=(), kept=()) == PlacementPlan()


def test_a_count_in_a_label_of_amd_stays() -> None:
    made = selecting({"beta.amd.com/gpu.vram.192G": "8"}, "amd.com/gpu")
    assert made.notes and made._replace(notes=(), kept=()) == PlacementPlan()


INTELS = {"i915", "xe", "max1550"}


@pytest.mark.parametrize(
    ("given", "devices"),
    [
        (expression("gpu.intel.com/product", "In", "Flex_170"), {"i915"}),
        (expression("gpu.intel.com/product", "In", "Max_1550"), {"max1550"}),
        (expression("gpu.intel.com/family", "In", "Flex_Series"), {"i915"}),
        (expression("gpu.intel.com/family", "NotIn", "Max_Series"), {"i915", "xe"}),
        (expression("gpu.intel.com/device-id.0380-56c0.present", "In", "true"), {"i915"}),
        (expression("gpu.intel.com/device-id.0380-56c0.present", "Exists"), {"i915"}),
        (expression("gpu.intel.com/device-id.0380-56c0.present", "NotIn", "true"), {"xe", "max1550"}),
        (expression("intel.feature.node.kubernetes.io/gpu", "In", "true"), INTELS),
    ],
    ids=lambda value: f"{value['key']} {value['operator']}" if isinstance(value, dict) else "",
)
def test_labels_of_intel(given: dict[str, Any], devices: set[str]) -> None:
    spec = required([given])
    made = placed(spec, "gpu.intel.com/i915")
    assert not made.refusals and after(spec, made) == {}
    assert chosen(made.selectors, INTELS) == devices


def test_an_unknown_family_of_intel_is_refused() -> None:
    assert "not known here" in selecting({"gpu.intel.com/family": "B_Series"}, "gpu.intel.com/xe").refusals[0][1]


@pytest.mark.parametrize(
    ("topology", "count", "word"),
    [
        ("2x2", "4", ""),
        ("2x2x1", 4, ""),
        ("2x4", 4, "several hosts"),
        ("2x4", "x", "cannot be compared"),
        ("big", 4, "cannot"),
    ],
)
def test_topologies_of_tpus(topology: str, count: object, word: str) -> None:
    labels = {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": topology}
    container = {"resources": {"limits": {"google.com/tpu": count}, "requests": {"google.com/tpu": count}}}
    made = placed({"nodeSelector": labels, "containers": [container]}, "google.com/tpu")
    assert [word in why for _, why, _ in made.refusals] == ([True] if word else [])
    if not word:
        # The labels make nodes, and the devices must be of the kind.
        assert made.removed == () and len(made.selectors) == 2
        assert chosen(made.selectors, {"tpu", "tpu-notopo"}) == ({"tpu"} if topology == "2x2" else set())


def test_hami_by_annotations() -> None:
    made = placed({}, "nvidia.com/gpu", **{"nvidia.com/use-gputype": " a100 ,, NVIDIA-V100,"})
    assert made.selectors == (
        '["A100", "V100"].exists(x, '
        'device.attributes["hami-core-gpu.project-hami.io"].productName.upperAscii().contains(x))',
    )
    assert made.annotations == ("nvidia.com/use-gputype",)
    assert chosen(made.selectors, {"hami"}) == {"hami"}


@pytest.mark.parametrize(
    ("annotation", "value", "devices"),
    [
        ("nvidia.com/nouse-gputype", "V100", set()),
        ("nvidia.com/nouse-gputype", "A100", {"hami"}),
        ("nvidia.com/use-gpuuuid", "GPU-other", set()),
        ("nvidia.com/nouse-gpuuuid", "GPU-other, GPU-more", {"hami"}),
    ],
)
def test_what_hami_may_not_use(annotation: str, value: str, devices: set[str]) -> None:
    made = placed({}, "nvidia.com/gpu", **{annotation: value})
    assert chosen(made.selectors, {"hami"}) == devices


def test_an_empty_annotation_of_hami_is_refused() -> None:
    assert placed({}, "nvidia.com/gpu", **{"nvidia.com/use-gputype": " ,"}).refusals


def test_labels_of_nvidia_count_for_hami_and_are_guarded_there() -> None:
    pod = {"nodeSelector": {FAMILY: "volta", PRODUCT: "NVIDIA-V100"}}
    found = resource("nvidia.com/gpu", beside={"nvidia.com/gpumem": 1})
    made = placement(pod, found, CATALOGUE, RELEASE)
    domain = 'device.attributes["hami-core-gpu.project-hami.io"]'
    assert made.selectors == (
        f'{domain}.?architecture.orValue("").lowerAscii().replace(" ", "-") == "volta"',
        f'{domain}.productName.replace(" ", "-") == "NVIDIA-V100"',
    )
    assert chosen(made.selectors, {"hami"}) is not None


WORDS = (*TERMS, *PREFERRED, PRODUCT, MEMORY, "nvidia.com/gpu", "nodeSelector", "preference", "matchExpressions")
WORDS += ("matchFields", "key", "operator", "values", "containers", "resources", "limits")
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "In", PRODUCT, "1", "{{ x }}"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(WORDS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(["nodeSelector", "affinity", "containers"]), JUNK), JUNK, JUNK)
def test_anything_can_be_in_a_spec(spec: dict[str, Any], terms: Any, preferences: Any) -> None:
    """Whatever is written there, it is read or left alone; and what is changed can be changed."""
    nested = {TERMS[2]: {TERMS[3]: terms}, PREFERRED[-1]: preferences}
    for each in (spec, {"affinity": {"nodeAffinity": nested}}):
        made = placed(each)
        after(each, made)
        assert not (made.refusals and made.removed)
