"""Vendors' files of users: what they can say, and one clear error for what they cannot."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kubectl_dra.errors import InputError
from kubectl_dra.manifests.inputs import Input
from kubectl_dra.migrate.engine import MigrationJob, migrate
from kubectl_dra.migrate.model import MigrationSettings
from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue, load
from tests.migrate.runs import settings

GOOD = """\
vendor: acme
title: ACME NPUs
drivers:
  - {name: npu.acme.io, always: [model]}
classes:
  - {name: npu.acme.io, driver: npu.acme.io, selector: device.driver == "npu.acme.io"}
resources:
  - {name: acme.io/npu, kind: whole, class: npu.acme.io}
  - pattern: acme\\.io/npu-(?P<model>[a-z]+)
    kind: whole
    class: npu.acme.io
    values: {model: {big: Big One, small: Small One}}
    selectors: ['device.attributes["npu.acme.io"].model == "{model}"']
  - {name: intel.com/sriov_111, kind: network, class: sriovnetwork.k8snetworkplumbingwg.io}
labels:
  - {key: acme.io/model, action: select, attribute: model}
  - {key: acme.io/memory, action: select, capacity: memory, compare: mebibytes}
beside:
  - {where: env, name: ACME_DEVICES, action: remove, message: The driver sets it.}
"""


def loading(folder: Path, text: str) -> VendorCatalogue:
    file = folder / "x.yaml"
    file.write_text(text)
    return load([str(file)])


@pytest.fixture
def loaded(tmp_path: Path) -> VendorCatalogue:
    return loading(tmp_path, GOOD)


@pytest.mark.parametrize(
    ("name", "vendor", "device_class", "selectors"),
    [
        ("acme.io/npu", "acme", "npu.acme.io", ()),
        ("acme.io/npu-big", "acme", "npu.acme.io", ('device.attributes["npu.acme.io"].model == "Big One"',)),
        # What the program would ask about is answered.
        ("intel.com/sriov_111", "acme", "sriovnetwork.k8snetworkplumbingwg.io", ()),
        ("nvidia.com/gpu", "nvidia", "gpu.nvidia.com", ()),
    ],
)
def test_names_of_users(
    loaded: VendorCatalogue, name: str, vendor: str, device_class: str, selectors: tuple[str, ...]
) -> None:
    found = loaded.resource(name)
    assert found is not None
    assert (found.vendor, found.outcome, found.device_class, found.selectors) == (
        vendor,
        "auto",
        device_class,
        selectors,
    )


def test_a_group_without_a_word_for_it_fits_nothing(loaded: VendorCatalogue) -> None:
    assert loaded.resource("acme.io/npu-huge") is None


def test_the_driver_of_a_known_class_is_known(loaded: VendorCatalogue) -> None:
    found = loaded.resource("intel.com/sriov_111")
    assert found is not None and found.driver == "sriovnetwork.k8snetworkplumbingwg.io"
    flag = loaded.flag("env", "ACME_DEVICES", ["acme"])
    assert flag is not None and flag.action == "remove"


def test_a_user_overrides_a_built_in_name(tmp_path: Path) -> None:
    text = "vendor: mine\ntitle: Mine\nresources:\n  - {name: nvidia.com/gpu, kind: whole, class: mig.nvidia.com}\n"
    found = loading(tmp_path, text).resource("nvidia.com/gpu")
    assert found is not None and (found.vendor, found.device_class) == ("mine", "mig.nvidia.com")


def test_several_vendors_in_one_file_and_in_several(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.json"
    first.write_text("vendor: a\ntitle: A\nresources: []\n---\nvendor: b\ntitle: B\nresources: []\n")
    second.write_text('{"vendor": "c", "title": "C", "resources": []}')
    assert [vendor.id for vendor in load([str(first), str(second)]).own] == ["a", "b", "c"]


WRONG = {
    "only a comment": ("# vendor: a\n", "there is no"),
    "no YAML": ("vendor: [", ":1"),
    "not a mapping": ("- vendor", "x.yaml"),
    "empty": ("", "there is nothing in it"),
    "key twice": ("vendor: a\nvendor: b\n", "vendor"),
    "unknown field": (GOOD + "colour: red\n", "colour"),
    "wrong type": (GOOD.replace("title: ACME NPUs", "title: 7"), "x.yaml:2:1: title: 7 is not of type 'string'"),
    "id that is built in": (
        GOOD.replace("vendor: acme", "vendor: nvidia"),
        "x.yaml:1:1: vendor: there is a vendor nvidia",
    ),
    "id twice": (GOOD + "---\n" + GOOD, "there is a vendor acme already"),
    "resource twice": (
        GOOD.replace("intel.com/sriov_111", "acme.io/npu"),
        "resources[2].name: acme.io/npu is there twice",
    ),
    "label twice": (GOOD.replace("acme.io/memory", "acme.io/model"), "labels[1].key: acme.io/model is there twice"),
    "name and pattern": (
        GOOD.replace("{name: acme.io/npu,", "{name: acme.io/npu, pattern: x,"),
        "resources[0]: it needs a name or a pattern, and not both",
    ),
    "neither": (GOOD.replace("{name: acme.io/npu,", "{"), "resources[0]: it needs a name or a pattern, and not both"),
    "name that is none": (GOOD.replace("name: acme.io/npu,", "name: npu,"), "resources[0].name: 'npu' does not match"),
    "broken pattern": (
        GOOD.replace("[a-z]+)", "[a-z]+"),
        "resources[1].pattern: error parsing regexp: missing closing )",
    ),
    "look-ahead": (GOOD.replace("[a-z]+)", "(?!x)[a-z]+)"), "resources[1].pattern: error parsing regexp"),
    "unknown class": (GOOD.replace("class: sriov", "class: other"), "resources[2].class: the class othernetwork"),
    "no class": (
        GOOD.replace(", class: npu.acme.io}\n  - pattern", "}\n  - pattern"),
        "the outcome auto needs a class",
    ),
    "no message": (GOOD.replace("kind: network,", "kind: network, outcome: note,"), "the outcome note needs a message"),
    "CEL of a class": (GOOD.replace('== "npu', '= "npu'), "classes[0].selector: the selector device.driver = "),
    "CEL of a resource": (GOOD.replace('].model == "{m', '].model + "{m'), "resources[1].selectors[0]: the selector"),
    "CEL of another release": (GOOD.replace('].model == "{model}"', '].model.nope() == "{model}"'), "nope"),
    "CEL of a label": (
        GOOD.replace("attribute: model}", "attribute: model, form: '{}.nope()'}"),
        "labels[0]: the selector",
    ),
    "form without a place": (GOOD.replace("attribute: model}", "attribute: model, form: x}"), "has no place {}"),
    "unknown group": (GOOD.replace('"{model}"', '"{size}"'), "resources[1].selectors: {size} is not a named group"),
    "label without an attribute": (GOOD.replace(", attribute: model}", "}"), "needs an attribute or a capacity"),
    "attribute that is none": (GOOD.replace("attribute: model}", "attribute: my-model}"), "labels[0].attribute"),
    "capacity that is none": (
        GOOD.replace("kind: network,", "kind: network, capacity: {memory: much},"),
        "resources[2].capacity.memory: ",
    ),
    "no way out": (
        GOOD.replace("kind: network,", "kind: network, outcome: ask, message: x,"),
        "the outcome ask needs a way_out",
    ),
    "like nobody": (GOOD + "like: [nobody]\n", "like[0]: there is no vendor nobody"),
}


@pytest.mark.parametrize("case", WRONG)
def test_one_clear_error(tmp_path: Path, case: str) -> None:
    text, message = WRONG[case]
    assert text != GOOD
    file = tmp_path / "x.yaml"
    with pytest.raises(InputError) as raised:
        loading(tmp_path, text)
    assert message in str(raised.value)
    assert str(file) in str(raised.value)
    assert len(str(raised.value)) < 600 + len(str(file))
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml: cannot be read: No such file"):
        load([str(tmp_path / "none.yaml")])


def test_a_hostile_pattern_takes_no_time(tmp_path: Path) -> None:
    text = (
        "vendor: slow\ntitle: Slow\nresources:\n"
        "  - {pattern: 'x\\.y/(a*)*(a*)*(a*)*b', kind: whole, class: gpu.nvidia.com}\n"
        "labels:\n  - {pattern: 'x\\.y/(a|aa)+b', action: keep}\n"
    )
    began = time.process_time()
    catalogue = loading(tmp_path, text)
    assert catalogue.resource("x.y/" + "a" * 63) is None
    assert catalogue.resource("x.y/" + "a" * 60 + "b") is not None
    assert time.process_time() - began < 5


def test_a_file_that_grows_by_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["vendor: bomb", "title: Bomb", "sources:", "  - &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  - &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    with pytest.raises(InputError):
        loading(tmp_path, "\n".join(lines) + "\nresources: []\n")


def test_a_class_that_the_name_tells(tmp_path: Path) -> None:
    text = (
        "vendor: ours\ntitle: Ours\nresources:\n"
        "  - pattern: huawei\\.com/Ascend(?P<model>[0-9A-Z]+)\n    kind: whole\n"
        "    class: npu-{model}.project-hami.io\n    driver: ascend.project-hami.io\n"
    )
    found = loading(tmp_path, text).resource("huawei.com/Ascend910B3")
    assert found is not None
    assert (found.device_class, found.driver) == ("npu-910B3.project-hami.io", "ascend.project-hami.io")


def test_a_label_that_is_the_same_as_itself(tmp_path: Path) -> None:
    itself = "labels:\n  - {pattern: '(?P<k>.+)', action: select, same_as: '{k}'}\n"
    catalogue = loading(tmp_path, GOOD.replace("labels:\n", itself))
    found = catalogue.resource("acme.io/npu")
    assert found is not None
    assert catalogue.label("zone", found) is None
    labelled = catalogue.label("acme.io/model", found)
    assert labelled is not None and labelled.rule.attribute == "model"


STAYS = """\
vendor: ours
title: Names of our cluster
resources:
  - {name: acme.io/fuse, kind: other, outcome: keep}
  - {name: rdma/ib, kind: network, outcome: keep}
"""
ASKING = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: main
    image: a:1
    resources: {limits: {acme.io/fuse: 1, rdma/ib: 1}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {requests.acme.io/fuse: 2}}
---
apiVersion: v1
kind: Pod
metadata: {name: gpu}
spec:
  containers:
  - name: main
    image: a:1
    resources: {limits: {acme.io/fuse: 1, nvidia.com/gpu: 1}}
"""


def test_what_is_said_to_stay_is_not_brought_up_again(tmp_path: Path) -> None:
    inputs = [Input("f.yaml", True, ASKING.encode())]
    assert {item.code for item in migrate(inputs, MigrationJob(settings())).items("refusal")} == {"MIG111", "MIG113"}
    chosen = MigrationSettings(loading(tmp_path, STAYS), settings().release)
    report = migrate(inputs, MigrationJob(chosen))
    assert not report.open and [item.code for item in report.items("change")] == ["MIG107", "MIG101"]
    (note,) = [item for item in report.items("note") if item.code == "MIG133"]
    assert "acme.io/fuse" in note.message
    (result,) = report.changed
    assert result.text is not None
    again = migrate([Input("f.yaml", True, result.text.after.encode())], MigrationJob(chosen))
    assert not again.files


def test_a_kind_of_the_user(tmp_path: Path) -> None:
    vendors = (
        "vendor: ours\ntitle: Ours\nresources: []\nworkloads:\n"
        "- {group: example.org, kind: Trainer, path: spec.groups.*.pod}\n"
    )
    text = (
        "apiVersion: example.org/v1\nkind: Trainer\nmetadata: {name: a}\nspec:\n  groups:\n  - pod:\n"
        "      containers:\n      - name: c\n        resources:\n          limits: {nvidia.com/gpu: 1}\n"
    )
    chosen = MigrationSettings(loading(tmp_path, vendors), settings().release)
    report = migrate([Input("f.yaml", True, text.encode())], MigrationJob(chosen))
    assert [item.sort for item in report.items() if item.sort != "note"] == ["change", "change", "object"]
    assert report.files[0].text is not None and "resourceClaimTemplateName: a-gpu" in report.files[0].text.after
    with pytest.raises(InputError):
        loading(tmp_path, vendors.replace("spec.groups.*.pod", "spec..pod"))
