"""The catalogue: what each resource becomes, and that all of its data is sound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kubectl_dra.api.releases import Release
from kubectl_dra.cel.library.regex import compile_pattern
from kubectl_dra.data.drivers import FOLDER, InstalledClass
from kubectl_dra.data.drivers import catalogue as drivers_known_to_lint
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.migrate.device_plugins.placement import placement
from kubectl_dra.migrate.vendors.catalogue import is_extended, load
from kubectl_dra.migrate.vendors.check import check, schema, structure
from kubectl_dra.migrate.vendors.model import KnownDriver, Resource
from tests.conformance.cel import RecordedDevice
from tests.migrate.vendor_devices import chosen, matches, of_driver
from tools.docs.vendors import EXAMPLE, page

CATALOGUE = load()
FILES = sorted(FOLDER.glob("*.yaml"))


def resource(name: str, **more: Any) -> Resource:
    found = CATALOGUE.resource(name, **more)
    assert found is not None, name
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia.com/gpu", True),
        ("rdma/hca", True),
        ("example.com/A.b_c-d", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("kubernetes.io/batch-cpu", False),
        ("deviceclass.resource.kubernetes.io/gpu.nvidia.com", False),
        ("requests.nvidia.com/gpu", False),
        ("nvidia.com/", False),
        ("/gpu", False),
        ("a/b/c", False),
        ("NVIDIA.com/gpu", False),
        ("nvidia.com/" + "x" * 64, False),
        ("{{ .Values.gpu }}", False),
        (7, False),
    ],
)
def test_extended_resources(name: object, expected: bool) -> None:
    assert is_extended(name) is expected


# name: vendor, kind, outcome, class
BECOMES = {
    "nvidia.com/gpu": "nvidia whole auto gpu.nvidia.com",
    "nvidia.com/mig-1g.5gb": "nvidia partition auto mig.nvidia.com",
    "nvidia.com/mig-1c.2g.10gb": "nvidia partition ask mig.nvidia.com",
    "nvidia.com/gpu.shared": "nvidia shared ask ",
    "nvidia.com/mig-1g.5gb.shared": "nvidia shared ask ",
    "nvidia.com/GP102GL_Tesla_P40": "nvidia passthrough ask vfio.gpu.nvidia.com",
    "nvidia.com/our-own-name": "nvidia other ask ",
    "nvidia.com/mlnx_sriov_rdma": "sriov network ask sriovnetwork.k8snetworkplumbingwg.io",
    "nvidia.com/gpumem-percentage": "hami fraction refuse ",
    "nvidia.com/priority": "hami fraction refuse ",
    "nvidia.com/total-gpumem": "hami quota ask ",
    "cambricon.com/vmlu": "hami fraction refuse ",
    "volcano.sh/vgpu-memory": "volcano fraction refuse ",
    "amd.com/gpu": "amd whole auto gpu.amd.com",
    "amd.com/cpx_nps4": "amd partition note gpu.amd.com",
    "amd.com/gpumem": "hami fraction refuse ",
    "gpu.intel.com/i915": "intel whole auto gpu.intel.com",
    "gpu.intel.com/xe": "intel whole auto gpu.intel.com",
    "gpu.intel.com/i915_monitoring": "intel monitoring ask gpu.intel.com",
    "gpu.intel.com/millicores": "intel fraction refuse ",
    "gpu.intel.com/dxg": "intel whole refuse ",
    "npu.intel.com/accel": "intel whole refuse ",
    "habana.ai/gaudi": "intel whole auto gaudi.intel.com",
    "qat.intel.com/generic": "intel whole note qat.intel.com",
    "dsa.intel.com/wq-user-dedicated": "intel other refuse ",
    "google.com/tpu": "google whole note tpu.google.com",
    "aws.amazon.com/neuron": "aws whole note neuron.aws.com",
    "aws.amazon.com/neurondevice": "aws whole note neuron.aws.com",
    "aws.amazon.com/neuroncore": "aws core refuse ",
    "vpc.amazonaws.com/efa": "aws network note efa.networking.k8s.aws",
    "huawei.com/Ascend910": "ascend whole ask ",
    "huawei.com/Ascend910B3": "ascend whole ask ",
    "huawei.com/Ascend910B3-memory": "ascend fraction ask ",
    "huawei.com/Ascend910-8c": "ascend partition ask ",
    "huawei.com/npu-core": "ascend core refuse ",
    "intel.com/sriov_111": "sriov network ask sriovnetwork.k8snetworkplumbingwg.io",
    "intel.com/eth0_vf": "sriov network ask sriovnetwork.k8snetworkplumbingwg.io",
    "mellanox.com/cx6.vfs1.a": "sriov network ask sriovnetwork.k8snetworkplumbingwg.io",
    "openshift.io/mynics": "sriov network ask sriovnetwork.k8snetworkplumbingwg.io",
    "openshift.io/scc_nics": "sriov network ask sriovnetwork.k8snetworkplumbingwg.io",
    "rdma/roce_gdr": "net network refuse ",
    "networking.gke.io.networks/blue": "net network refuse ",
    "rebellions.ai/npu": "rebellions whole auto npu.rebellions.ai",
    "rebellions.ai/ATOM": "rebellions whole note npu.rebellions.ai",
    "furiosa.ai/rngd": "furiosa whole auto npu.furiosa.ai",
    "furiosa.ai/rngd-2core.12gb": "furiosa partition refuse ",
    "beta.furiosa.ai/npu": "furiosa whole ask npu.furiosa.ai",
    "tenstorrent.com/chip": "tenstorrent whole auto tenstorrent.com",
    "tenstorrent.com/n300": "tenstorrent whole note tenstorrent.com",
    "qualcomm.com/qaic": "qualcomm whole refuse ",
    "qualcomm.com/qaic-pro": "qualcomm whole refuse ",
    "ibm.com/spyre_pf": "ibm whole refuse ",
    "example.com/gpu": "example whole auto gpu.example.com",
}


@pytest.mark.parametrize("name", BECOMES)
def test_what_a_resource_becomes(name: str) -> None:
    found = resource(name)
    assert f"{found.vendor} {found.kind} {found.outcome} {found.device_class}" == BECOMES[name]
    assert found.name == name
    # Whatever is migrated tolerates what admission made it tolerate; whatever is not says what to do.
    if found.outcome in ("auto", "note"):
        assert found.tolerations == ({"key": name, "operator": "Exists", "effect": "NoSchedule"},)
    else:
        assert found.message and found.way_out and not found.tolerations


@pytest.mark.parametrize(
    "name",
    ["some.vendor/device", "acme.com/nvflare", "xilinx.com/vfpga", "github.com/fuse", "cpu", "example.com/other", "x"],
)
def test_what_nobody_knows_is_not_guessed(name: str) -> None:
    assert CATALOGUE.resource(name) is None


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("mig-1g.5gb", "1g.5gb"),
        ("mig-7g.80gb", "7g.80gb"),
        ("mig-1g.10gb.me", "1g.10gb+me"),
        ("mig-1g.10gb.me.all", "1g.10gb+me.all"),
        ("mig-1g.24gb.gfx", "1g.24gb+gfx"),
        ("mig-1g.24gb-me", "1g.24gb-me"),
    ],
)
def test_profiles_of_mig_resources(name: str, profile: str) -> None:
    assert resource(f"nvidia.com/{name}").selectors == (f'device.attributes["gpu.nvidia.com"].profile == "{profile}"',)


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("nvidia.com/mig-1g.5gb", {"mig1g"}),
        ("nvidia.com/mig-1g.10gb.me", {"mig1gme"}),
        ("amd.com/gpu", {"amd"}),
        ("amd.com/cpx_nps4", {"amd-cpx", "amd-auto"}),
        ("amd.com/spx_nps1", {"amd"}),
        ("gpu.intel.com/i915", {"i915", "max1550"}),
        ("gpu.intel.com/xe", {"xe"}),
        ("habana.ai/gaudi", {"gaudi2", "gaudi3"}),
        ("qat.intel.com/cy", {"qat"}),
        ("qat.intel.com/generic", {"qat"}),
        ("qat.intel.com/dc", set()),
        ("qat.intel.com/sym-dc", set()),
        ("google.com/tpu", {"tpu", "tpu-notopo"}),
        ("aws.amazon.com/neuron", {"neuron"}),
        ("rebellions.ai/npu", {"rbln"}),
        ("tenstorrent.com/chip", {"tt"}),
        ("example.com/gpu", {"ex"}),
    ],
)
def test_which_devices_a_resource_gets(name: str, devices: set[str]) -> None:
    """The selectors of the class come first, as in the scheduler, and must not fail on any device."""
    found = resource(name)
    device_class = CATALOGUE.device_class(found.device_class)
    assert device_class is not None and device_class.driver == found.driver
    admitted = of_driver(found.driver)
    if device_class.selector:
        admitted = tuple(chosen([device_class.selector], admitted))
    assert chosen(found.selectors, admitted) == devices


def test_tpus_come_as_a_whole_node() -> None:
    assert resource("google.com/tpu").allocation_mode == "All"
    assert resource("gpu.intel.com/monitoring").admin_access


def test_whose_class_carries_the_name_itself() -> None:
    carried = {name for name in BECOMES if resource(name).extended_resource_since}
    assert carried == {"nvidia.com/gpu", "amd.com/gpu", "rebellions.ai/npu", "tenstorrent.com/chip"}


def test_hami_shares_names_with_nvidia() -> None:
    beside = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": "1024", "nvidia.com/gpucores": 30, "cpu": "1"}
    found = resource("nvidia.com/gpu", beside=beside)
    assert (found.vendor, found.outcome, found.device_class) == ("hami", "note", "hami-core-gpu.project-hami.io")
    assert found.capacity == {"memory": "1024Mi", "cores": "30"}
    assert found.gates == ("DRAConsumableCapacity",)
    part = resource("nvidia.com/gpumem", beside=beside)
    assert (part.part_of, part.outcome, part.tolerations) == ("nvidia.com/gpu", "auto", ())


@pytest.mark.parametrize(
    "signs",
    [
        {"beside": {"nvidia.com/gpucores": 10}},
        {"annotations": {"nvidia.com/use-gputype": "A100"}},
        {"annotations": {"nvidia.com/vgpu-mode": "mig"}},
        {"scheduler": "hami-scheduler"},
    ],
)
def test_signs_of_hami(signs: dict[str, Any]) -> None:
    assert resource("nvidia.com/gpu", **signs).vendor == "hami"
    assert resource("nvidia.com/mig-1g.5gb", **signs).vendor == "nvidia"


@pytest.mark.parametrize(
    ("beside", "outcome", "word"),
    [
        ({"nvidia.com/gpumem": "lots"}, "refuse", "gpumem"),
        ({"nvidia.com/gpumem": "1500m"}, "refuse", "gpumem"),
        ({"nvidia.com/gpumem": True}, "refuse", "gpumem"),
        ({"nvidia.com/gpumem": "{{ .Values.memory }}"}, "refuse", "gpumem"),
        ({"nvidia.com/gpumem": 0}, "note", ""),
        ({"nvidia.com/gpumem-percentage": 50}, "refuse", "gpumem-percentage"),
        ({"nvidia.com/priority": 1}, "refuse", "priority"),
    ],
)
def test_what_hami_cannot_have(beside: dict[str, Any], outcome: str, word: str) -> None:
    found = resource("nvidia.com/gpu", beside={"nvidia.com/gpu": 1, **beside})
    assert found.outcome == outcome
    assert word in found.message
    assert found.capacity == {}


def test_a_part_without_a_whole_is_asked_about() -> None:
    found = resource("nvidia.com/gpumem", beside={"nvidia.com/gpumem": 1024})
    assert found.outcome == "ask" and "nvidia.com/gpu" in found.message


@pytest.mark.parametrize(
    ("where", "name", "vendor", "action"),
    [
        ("env", "NVIDIA_VISIBLE_DEVICES", "nvidia", "remove"),
        ("env", "NVIDIA_VISIBLE_DEVICES", "hami", "remove"),
        ("env", "CUDA_VISIBLE_DEVICES", "nvidia", "keep"),
        ("env", "NVIDIA_DRIVER_CAPABILITIES", "nvidia", "quiet"),
        ("env", "NVIDIA_VISIBLE_DEVICES", "amd", None),
        ("env", "PATH", "nvidia", None),
        ("env", "HIP_VISIBLE_DEVICES", "amd", "keep"),
        ("env", "HABANA_VISIBLE_DEVICES", "intel", "remove"),
        ("env", "TPU_WORKER_ID", "google", "keep"),
        ("env", "NEURON_RT_NUM_CORES", "aws", "keep"),
        ("env", "PCIDEVICE_INTEL_COM_SRIOV", "sriov", "keep"),
        ("runtimeClassName", "nvidia", "nvidia", "keep"),
        ("runtimeClassName", "gvisor", "nvidia", None),
        ("runtimeClassName", "ascend", "ascend", "keep"),
        ("annotation", "cdi.k8s.io/nvidia-device-plugin", "nvidia", "remove"),
        ("annotation", "hami.io/gpu-scheduler-policy", "hami", "remove"),
        ("annotation", "huawei.com/vnpu-mode", "ascend", "remove"),
        ("annotation", "k8s.v1.cni.cncf.io/networks", "sriov", "keep"),
        ("schedulerName", "hami-scheduler", "hami", "ask"),
        ("hostPath", "/dev/nvidia0", "nvidia", "keep"),
        ("hostPath", "/dev/dri/renderD128", "intel", "keep"),
        ("hostPath", "/dev/kfd", "amd", "keep"),
        ("hostPath", "/dev/shm", "amd", None),
    ],
)
def test_what_stands_beside(where: str, name: str, vendor: str, action: str | None) -> None:
    flag = CATALOGUE.flag(where, name, [vendor])
    assert (flag.action if flag else None) == action
    assert flag is None or flag.message or action == "quiet"


# --- the data itself ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_fit_the_schema(file: Any) -> None:
    raw = next(yaml.safe_load_all(file.read_text()))
    errors = [
        f"{list(error.absolute_path)}: {error.message}" for error in Draft202012Validator(schema()).iter_errors(raw)
    ]
    assert errors == []
    assert {"as_of", "status", "domains", "sources"} <= set(raw)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())


def _patterns(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value[key] for key in ("pattern", "unless") if isinstance(value.get(key), str)]
        return own + [pattern for below in value.values() for pattern in _patterns(below)]
    return [pattern for below in value for pattern in _patterns(below)] if isinstance(value, list) else []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_patterns_are_those_of_users_too(file: Any) -> None:
    for pattern in _patterns(next(yaml.safe_load_all(file.read_text()))):
        assert set(compile_pattern(pattern).groupindex) == set(re.compile(pattern).groupindex), pattern


def test_resources_have_what_their_outcome_needs() -> None:
    for vendor in CATALOGUE.vendors.values():
        for rule in vendor.resources:
            found = rule.resource
            assert found.outcome == "auto" or found.message
            assert found.outcome in ("auto", "note") or found.way_out
            assert found.outcome in ("ask", "refuse") or found.device_class
        for id in vendor.like:
            assert id in CATALOGUE


@pytest.mark.parametrize(
    ("driver", "device_class", "has", "lacks"),
    [
        ("gpu.intel.com", "gpu.intel.com", "pciAddress", "resource.kubernetes.io/pcieRoot"),
        ("gpu.nvidia.com", "gpu.nvidia.com", "uuid", "profile"),
        ("gpu.nvidia.com", "mig.nvidia.com", "profile", "uuid"),
        ("gpu.nvidia.com", "vfio.gpu.nvidia.com", "deviceID", "architecture"),
        ("gpu.nvidia.com", "", "productName", "architecture"),
    ],
)
def test_what_devices_of_a_class_always_have(driver: str, device_class: str, has: str, lacks: str) -> None:
    known = CATALOGUE.driver(driver, device_class)
    assert known is not None
    assert has in known.always and lacks not in known.always


class _Others:
    """The catalogue without one vendor: as it is for a user who writes that vendor's file."""

    def __init__(self, without: str) -> None:
        self._without = without

    def __contains__(self, id: str) -> bool:
        return id != self._without and id in CATALOGUE

    def device_class(self, name: str) -> InstalledClass | None:
        return CATALOGUE.device_class(name)

    def driver(self, name: str) -> KnownDriver | None:
        return CATALOGUE.driver(name)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_pass_the_checks_of_users_files(file: Any) -> None:
    """Names, patterns and placeholders; and all CEL compiles on 1.34 and 1.36."""
    document = read_documents(file.read_bytes(), file.name, strict=True)[0]
    structure(document)
    assert check(document, _Others(file.stem), set()).id == file.stem


_VALUES: dict[str, Any] = {
    "string": {"string": "x"},
    "int": {"int": 1},
    "bool": {"bool": True},
    "version": {"version": "1.2.3"},
}


def _barest(device_class: str, driver: str) -> Iterator[RecordedDevice]:
    """Devices of a class with what all of them have, and nothing else."""
    known = drivers_known_to_lint().driver(driver)
    assert known is not None, driver
    for kind in known.kinds_of(device_class):
        attributes = {name: _VALUES[kind.attributes[name].type or "string"] for name in kind.always}
        yield RecordedDevice(driver, attributes, {name: {"value": "1Gi"} for name in kind.capacities}, False)


SAMPLES = ("a", "1", "1.2.3", "1G", "Flex_Series", "A-MIG-1g.5gb", "true", "1x1")


@pytest.mark.parametrize("name", [name for name, what in BECOMES.items() if what.split()[2] in ("auto", "note")])
def test_no_selector_fails_on_a_device_of_its_class(name: str) -> None:
    found = resource(name)
    vendors = [CATALOGUE.vendor(found.vendor), *(vendor for vendor in CATALOGUE.vendors.values() if vendor.everyone)]
    keys = {rule.key for vendor in vendors for rule in vendor.labels if rule.key}
    keys |= {"beta.amd.com/gpu.vram.1G", "gpu.intel.com/device-id.0380-56c0.present", "nvidia.com/cuda.driver.rev"}
    seen = 0
    for key in keys:
        for operator, value in product(("In", "NotIn", "Gt", "Lt"), SAMPLES):
            term = {"matchExpressions": [{"key": key, "operator": operator, "values": [value]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            limits = {"resources": {"limits": {name: 1}}}
            spec = {"containers": [limits], "affinity": {"nodeAffinity": required}}
            made = placement(spec, found, CATALOGUE, Release(1, 36))
            for device in _barest(made.device_class or found.device_class, found.driver):
                matches((*found.selectors, *made.selectors), device)
                seen += bool(made.selectors)
    assert seen or found.vendor not in ("nvidia", "amd", "intel", "google")


# The page about vendors is what the files say, and its example loads.


DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_page_is_up_to_date() -> None:
    assert (DOCS / "vendors.md").read_text("utf-8") == page(), "run make docs"


def test_every_vendor_is_on_the_page() -> None:
    text = page()
    for vendor in load().vendors.values():
        assert f"## {vendor.title}\n" in text
        for rule in vendor.resources:
            assert rule.pattern is not None or f"`{rule.name}`" in text


def test_the_example_loads(tmp_path: Path) -> None:
    file = tmp_path / "acme.yaml"
    file.write_text(EXAMPLE)
    found = load([str(file)]).resource("acme.io/npu-x2")
    assert found is not None
    assert found.selectors == ('device.attributes["npu.acme.io"].model == "x2"',)
