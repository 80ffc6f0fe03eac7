"""What was not read never makes an answer positive.

Each kind is hidden in turn. Where the answer is positive all the same, objects of that kind that could end it are put
in its place: it must stay positive whatever they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import yaml

from kubectl_dra.cli.main import run as command
from kubectl_dra.cluster.kinds import resource_of
from kubectl_dra.cluster.snapshot import DRA_KINDS, EVERY_KIND
from tests.ran import ran
from tests.unread.adversaries import World
from tools.api_server import APIServer, forbidden
from tools.examples import arguments, examples, fit_examples
from tools.recorder.recorded import lines

JSON = dict[str, Any]
DATA = Path(__file__).parents[1] / "conformance" / "data"
# Events repeat what the scheduler said before. Words that no filter here says leave the answer open, and never end it.
KINDS = [kind for kind in EVERY_KIND if kind != "Event"]
POSITIVE = ("allocated", "can-be-scheduled")
OFTEN = ("fits", "shared-capacity-fits", "extended-resource", "all-held", "admin-access-unlabelled", "as-many-as-fit")
"""Examples that are tried on each run."""


class Asked(NamedTuple):
    """A question: the words of the command without what names the cluster, the cluster, and the manifest's objects."""

    words: list[str]
    objects: list[JSON]
    manifest: list[JSON]


def example(path: Path) -> Asked:
    """The question of an example."""
    words, objects = arguments(path), []
    manifest: list[JSON] = []
    for number, word in enumerate(words):
        file = path / word
        if word.endswith((".yaml", ".json")) and words[number - 1] == "--snapshot":
            objects = yaml.load(file.read_text(), Loader=yaml.CSafeLoader)["items"]
        elif word.endswith(".yaml"):
            manifest = [one for one in yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader) if one]
            words[number] = str(file)
    place = words.index("--snapshot")
    return Asked(words[:place] + words[place + 2 :], objects, manifest)


def recorded(corpus: str, start: int, step: int) -> Iterator[Asked]:
    """Pods that a scheduler has placed, and that explain says can be."""
    for case in islice(lines(DATA / f"{corpus}.jsonl.gz"), start, None, step):
        if case["expect"].get("outcome") != "scheduled" or "schedulerConfig" in case:
            continue
        namespace, _, name = case["pod"].partition("/")
        gates = ",".join(f"{gate}=true" for gate in case.get("gates", ()))
        flags = ["--feature-gates", gates] if gates else []
        words = ["explain", f"pod/{name}", "-n", namespace, "--kubernetes-version", case["release"], *flags]
        yield Asked(words, case["snapshot"]["items"], [])


def report_of(words: Sequence[str]) -> tuple[int, JSON, str]:
    """Exit code, the report, and what was said on standard error."""
    code, out, errors = ran(*words, "-o", "json")
    assert "a defect of" not in errors
    return code, json.loads(out or "{}"), errors


def saved(path: Path, objects: Sequence[JSON], hidden: str = "") -> list[str]:
    """The flags that name a file of a cluster of which one kind was not read."""
    read = [kind for kind in EVERY_KIND if kind != hidden]
    items = [one for one in objects if one["kind"] != hidden]
    head = {"apiVersion": "v1", "kind": "List", "kubectl-dra": {"schemaVersion": "1", "read": read}}
    path.write_bytes(msgspec.json.encode({**head, "items": items}))
    return ["--snapshot", str(path)]


def positive(code: int, report: JSON) -> bool:
    """Whether an answer is yes, whatever else it says."""
    if report.get("kind") == "FitReport":
        return code == 0
    found = report.get("items", [report]) if report else []
    return bool(found) and all(one["verdict"] in POSITIVE for one in found)


def contradicted(asked: Asked, kinds: Sequence[str], path: Path) -> Iterator[str]:
    """Kinds that were hidden, and whose objects end an answer that was positive without them."""
    world = World(asked.objects, asked.manifest)
    for kind in kinds:
        if not positive(*report_of([*asked.words, *saved(path, asked.objects, kind)])[:2]):
            continue
        rest = [one for one in asked.objects if one["kind"] != kind]
        for number, others in enumerate(world.others(kind)):
            code, report, errors = report_of([*asked.words, *saved(path, [*rest, *others])])
            if not positive(code, report):
                yield f"{kind} {number}: {code} {report.get('answer') or errors or report['items'][0]['answer']}"


def undetermined_is_explained(asked: Asked, kinds: Sequence[str], path: Path) -> Iterator[str]:
    """Kinds that were hidden, and that an answer which depends on them does not name."""
    if not positive(*report_of([*asked.words, *saved(path, asked.objects)])[:2]):
        return
    for kind in kinds:
        code, report, errors = report_of([*asked.words, *saved(path, asked.objects, kind)])
        found = report.get("items", [report]) if report else []
        named = any(gap["kind"] == kind and gap["decides"] for one in found for gap in one.get("unread", ()))
        if code == 3 and not named and kind not in errors:
            yield kind


def serve(server: APIServer, objects: Sequence[JSON], hidden: str) -> None:
    """Serves a cluster, and forbids one kind."""
    server.routes["/version"] = {"gitVersion": "v1.36.2"}
    server.serve_group(v1=tuple(resource_of(kind).plural for kind in DRA_KINDS if kind != "DeviceTaintRule"))
    server.serve_group(v1beta2=("devicetaintrules",))
    versions = [{"groupVersion": f"resource.k8s.io/{name}", "version": name} for name in ("v1", "v1beta2")]
    server.routes["/apis/resource.k8s.io"] = {"kind": "APIGroup", "versions": versions}
    server.routes["/apis/scheduling.k8s.io"] = {"versions": [{"version": "v1"}, {"version": "v1alpha2"}]}
    spaces = {one["metadata"]["namespace"] for one in objects if "namespace" in one["metadata"]} | {"team"}
    for kind in EVERY_KIND:
        plural, group = resource_of(kind)
        version = {"DeviceTaintRule": "v1beta2", "PodGroup": "v1alpha2", "Workload": "v1alpha2"}.get(kind, "v1")
        root = f"/apis/{group}/{version}" if group else "/api/v1"
        own = [one for one in objects if one["kind"] == kind]
        listed = {"kind": f"{kind}List", "apiVersion": f"{group}/{version}" if group else version, "metadata": {}}
        refusal = forbidden(f"{plural}.{group}" if group else plural)
        server.routes[f"{root}/{plural}"] = refusal if kind == hidden else {**listed, "items": own}
        for space in spaces if kind == "Namespace" or (own and "namespace" in own[0]["metadata"]) or not own else ():
            within = [one for one in own if one["metadata"].get("namespace") == space]
            route = refusal if kind == hidden else {**listed, "items": within}
            server.routes[f"{root}/namespaces/{space}/{plural}"] = route
    if hidden != "Namespace":
        server.routes |= {
            f"/api/v1/namespaces/{one['metadata']['name']}": one for one in objects if one["kind"] == "Namespace"
        }


EXAMPLES = [*examples(), *fit_examples()]
FEW = [path for path in EXAMPLES if path.name in OFTEN]
REST = [path for path in EXAMPLES if path.name not in OFTEN]


def _name(path: Path) -> str:
    return path.name


def _half(paths: Sequence[Path]) -> list[Any]:
    """Every second example, and the others in ``make exhaustive``."""
    return [pytest.param(path, marks=pytest.mark.exhaustive if place % 2 else ()) for place, path in enumerate(paths)]


def _hidden_in_files(path: Path, file: Path) -> None:
    asked = example(path)
    assert report_of([*asked.words, *saved(file, asked.objects)])[0] == int((path / "exit-code").read_text())
    assert list(contradicted(asked, KINDS, file)) == []
    assert list(undetermined_is_explained(asked, KINDS, file)) == []


@pytest.mark.parametrize("path", FEW, ids=_name)
def test_absent_from_files(path: Path, tmp_path: Path) -> None:
    _hidden_in_files(path, tmp_path / "cluster.json")


@pytest.mark.slow
@pytest.mark.parametrize("path", _half(REST), ids=_name)
def test_absent_from_the_files_of_other_examples(path: Path, tmp_path: Path) -> None:
    _hidden_in_files(path, tmp_path / "cluster.json")


def _recorded_pods(corpus: str, start: int, step: int, file: Path) -> int:
    tried = 0
    for asked in recorded(corpus, start, step):
        tried += 1
        assert list(contradicted(asked, KINDS, file)) == [], asked.words
        assert list(undetermined_is_explained(asked, KINDS, file)) == [], asked.words
    return tried


def test_absent_from_a_recorded_cluster(tmp_path: Path) -> None:
    assert _recorded_pods("pods", 0, 150, tmp_path / "cluster.json")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("corpus", "start", "step"), [("pods", 1, 4), ("pod-releases", 0, 4), ("pod-node-resources", 0, 2)]
)
def test_absent_from_recorded_clusters(corpus: str, start: int, step: int, tmp_path: Path) -> None:
    assert _recorded_pods(corpus, start, step, tmp_path / "cluster.json") >= 4


@pytest.fixture
def server() -> Iterator[APIServer]:
    made = APIServer()
    yield made
    made.close()


def _forbidden(path: Path, kinds: Sequence[str], server: APIServer, folder: Path) -> None:
    """Where the answer of a server that forbids a kind is yes, so is that of a file without it (see above)."""
    asked, file = example(path), folder / "cluster.json"
    flags = ["--kubeconfig", server.kubeconfig(folder)]
    serve(server, asked.objects, "")
    open_anyway = report_of([*asked.words, *flags])[0] == 3
    for kind in kinds:
        serve(server, asked.objects, kind)
        code, report, errors = report_of([*asked.words, *flags])
        without = report_of([*asked.words, *saved(file, asked.objects, kind)])
        if positive(code, report):
            assert positive(*without[:2]), kind
        elif code == 3 and report and not errors and not open_anyway:
            found = report.get("items", [report])
            gaps = [gap for one in found for gap in one["unread"] if gap["kind"] == kind]
            assert gaps and gaps[0]["permission"]["resource"] == resource_of(kind).plural, kind


SOON = ("Node", "Pod", "ResourceClaim", "DeviceTaintRule", "Namespace", "ResourceQuota", "LimitRange")


@pytest.mark.parametrize("path", [path for path in FEW if path.name in ("fits", "as-many-as-fit")], ids=_name)
def test_forbidden_by_the_server(path: Path, server: APIServer, tmp_path: Path) -> None:
    _forbidden(path, SOON, server, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES[::4], ids=_name)
def test_each_kind_forbidden_by_the_server(path: Path, server: APIServer, tmp_path: Path) -> None:
    _forbidden(path, KINDS, server, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", [path for path in EXAMPLES if path not in EXAMPLES[::4]], ids=_name)
def test_each_kind_forbidden_in_the_other_examples(path: Path, server: APIServer, tmp_path: Path) -> None:
    _forbidden(path, KINDS, server, tmp_path)


# --- lists and forecasts ---------------------------------------------------------------------------


def _leaves_open(kind: str, report: JSON) -> bool:
    """Whether a report says that it does not know what depends on a kind."""
    return any(gap["kind"] == kind and gap["decides"] for gap in report["unread"])


def _listed(words: Sequence[str], flags: Sequence[str], kind: str) -> frozenset[str]:
    """What a list says that is good news: the scheduler gives a device, nobody uses a claim, no pod is deleted."""
    code, report, _ = report_of([*words, *flags])
    if kind == "DeviceList":
        # A pod starts with a free device, unless the list says that it does not know that.
        means = {"unserved": ("given",), "free": ("given",) if _leaves_open("Pod", report) else ("given", "starts")}
        rows = report.get("items", ())
        return frozenset(f"{one['pool']}/{one['device']} {it}" for one in rows for it in means.get(one["state"], ()))
    if kind == "ClaimList":
        return frozenset(one["name"] for one in report.get("items", ()) if one["state"] == "no-pod")
    if kind == "UseReport":
        free = report.get("summary", {}).get("states", {}).get("free", 0)
        return frozenset((f"{free} free",)) if code == 0 and free else frozenset()
    if kind == "Answer":
        return frozenset(("yes",)) if code == 0 else frozenset()
    if kind == "DriverList":
        # What it says of a driver is of what was read; that all are well is its exit code.
        rows = [one for one in report.get("items", ()) if code == 0 and one["state"] == "healthy"]
        return frozenset(f"{one['driver']} {one.get('node')}" for one in rows)
    spared = report.get("blastRadius", {}).get("podsDeleted") == 0
    return frozenset(("nobody is hit",)) if spared else frozenset()


LISTS = (
    (["devices"], "DeviceList"),
    (["claims"], "ClaimList"),
    (["top"], "UseReport"),
    (["drivers"], "DriverList"),
    (["taint", "--dry-run=client", "--driver", "gpu.nvidia.com", "k=v:NoExecute"], "Tainted"),
)


def _answers(objects: Sequence[JSON]) -> Iterator[tuple[list[str], str]]:
    """What is asked about each class, the first device of each node and the first claims that are not allocated."""
    yield from (
        (["explain", f"class/{one['metadata']['name']}"], "Answer") for one in objects if one["kind"] == "DeviceClass"
    )
    for one in objects:
        spec = one.get("spec") or {}
        if one["kind"] == "ResourceSlice" and spec.get("nodeName") and spec.get("devices"):
            yield ["explain", f"device/{spec['nodeName']}/{spec['devices'][0]['name']}"], "Answer"
    pending = [one["metadata"] for one in objects if one["kind"] == "ResourceClaim" and not one.get("status")]
    yield from ((_about_claim(one), "Answer") for one in pending[:2])


def _about_claim(meta: JSON) -> list[str]:
    return ["explain", f"claim/{meta['name']}", "-n", meta["namespace"]]


@pytest.mark.parametrize("path", examples(), ids=_name)
def test_an_allocated_claim_is_well_only_where_all_was_read_that_tells(path: Path, tmp_path: Path) -> None:
    asked, file = example(path), tmp_path / "cluster.json"
    there = {one["kind"] for one in asked.objects} - {"Event"}
    claims = [one["metadata"] for one in asked.objects if one["kind"] == "ResourceClaim" and one.get("status")]
    for words in map(_about_claim, claims):
        well = report_of([*words, *saved(file, asked.objects)])[0] == 0
        for kind in ("Pod",) if well else there:
            code, report, errors = report_of([*words, *saved(file, asked.objects, kind)])
            assert code, (words, kind)
            if code == 3 and kind not in errors:
                assert any(gap["kind"] == kind and gap["decides"] for gap in report["unread"])


def _lists(path: Path, file: Path) -> None:
    asked = example(path)
    world = World(asked.objects, asked.manifest)
    for words, report in (*LISTS, *islice(_answers(asked.objects), 8)):
        for kind in KINDS:
            said = _listed(words, saved(file, asked.objects, kind), report)
            rest = [one for one in asked.objects if one["kind"] != kind]
            for others in world.others(kind) if said else ():
                left = _listed(words, saved(file, [*rest, *others]), report)
                assert said <= left, (words, kind, others[:1])


@pytest.mark.parametrize("path", [path for path in FEW if path.name in ("all-held", "fits")], ids=_name)
def test_lists(path: Path, tmp_path: Path) -> None:
    _lists(path, tmp_path / "cluster.json")


@pytest.mark.slow
@pytest.mark.parametrize("path", _half(examples()), ids=_name)
def test_lists_of_all_examples(path: Path, tmp_path: Path) -> None:
    _lists(path, tmp_path / "cluster.json")


def test_lint_does_not_call_clean_what_it_cannot_compare(tmp_path: Path) -> None:
    """A class or template that the cluster lacks is found where it is known to lack it."""
    (asked,) = (example(path) for path in FEW if path.name == "fits")
    file, manifest = tmp_path / "cluster.json", tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": asked.manifest}))
    assert report_of(["lint", str(manifest), *saved(file, asked.objects)])[0] == 0
    for kind in ("DeviceClass", "ResourceSlice"):
        code, report, errors = report_of(["lint", str(manifest), *saved(file, asked.objects, kind)])
        assert code == 3 and [gap["kind"] for gap in report["unread"]] == [kind] and kind in errors


def test_a_device_is_not_called_gone_where_no_slices_were_read(tmp_path: Path) -> None:
    """One that a claim holds has a name all the same; with the slices, or where there are none, it is known."""
    (asked,) = (example(path) for path in FEW if path.name == "all-held")
    (held, *_) = (
        one["status"]["allocation"]["devices"]["results"][0]
        for one in asked.objects
        if one["kind"] == "ResourceClaim" and one.get("status", {}).get("allocation")
    )
    device = f"{held['driver']}/{held['pool']}/{held['device']}"
    words = ["taint", device, "k=v:NoSchedule", "--dry-run=client"]
    rest = [one for one in asked.objects if one["kind"] != "ResourceSlice"]
    for flags, known in (
        (saved(tmp_path / "whole.json", asked.objects), True),
        (saved(tmp_path / "hidden.json", asked.objects, "ResourceSlice"), None),
        (saved(tmp_path / "none.json", rest), False),
    ):
        _, report, _ = report_of([*words, *flags])
        (done,) = report["rules"]
        assert done.get("published") is known
        assert any("not published now" in text for text in report["warnings"]) == (known is False)


# --- no DRA ------------------------------------------------------------------------------------------

NO_DRA = "This cluster has no DRA: v1.29.4 does not serve resource.k8s.io (on by default from 1.34)."


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["explain"], 1),
        (["explain", "-A"], 1),
        (["explain", "pod/p"], 1),
        (["explain", "-f", "pod.yaml"], 1),
        (["fit", "-f", "pod.yaml"], 1),
        (["devices"], 1),
        (["claims"], 1),
        (["top"], 1),
        (["taint", "--list"], 1),
    ],
)
def test_a_server_without_dra(
    words: list[str], code: int, server: APIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}, "spec": {}}
    for name, items in (("pods", [pod]), ("nodes", []), ("namespaces", []), ("resourcequotas", []), ("events", [])):
        server.routes[f"/api/v1/{name}"] = items
    server.routes["/version"] = {"gitVersion": "v1.29.4"}
    (tmp_path / "pod.yaml").write_text(json.dumps(pod))
    words = [str(tmp_path / word) if word.endswith(".yaml") else word for word in words]
    assert command([*words, "--kubeconfig", server.kubeconfig(tmp_path)]) == code
    assert capsys.readouterr().err == f"{NO_DRA}\n"
