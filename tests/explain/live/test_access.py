"""The connection, and what a user may see: an answer, or a sentence that says what is missing."""

from __future__ import annotations

import base64
import copy
import json
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.controlplane.client import Json
from tools.controlplane.cluster import Cluster, wait
from tools.controlplane.objects import device, request
from tools.controlplane.plane import ControlPlane, release_of
from tools.live.command import Answer, Command, subprocess_run
from tools.live.referee import Referee
from tools.live.releases import RANDOM_ORDER, expected

DRA = "resource.k8s.io"
NAMESPACED = ["pods", "events", f"resourceclaims.{DRA}", f"resourceclaimtemplates.{DRA}"]
CLUSTER_WIDE = [f"resourceslices.{DRA}", f"deviceclasses.{DRA}", "nodes", f"devicetaintrules.{DRA}"]


# Connections that do not work


@pytest.fixture
def config(control_plane: ControlPlane) -> Json:
    """The kubeconfig of the control plane, to be spoiled."""
    loaded: Json = json.loads(control_plane.kubeconfig.read_text())
    return copy.deepcopy(loaded)


def explain(command: Command, config: Json, directory: Path, *arguments: str) -> Answer:
    path = directory / "config.json"
    path.write_text(json.dumps(config))
    return command("explain", "pod/none", "--kubeconfig", str(path), "-n", "default", "-o", "json", *arguments)


def refused(answer: Answer, *texts: str) -> None:
    """One sentence on stderr with the texts, perhaps on several lines, and nothing else."""
    assert answer.code == 2, answer.text
    assert answer.out == ""
    assert answer.err.startswith("error: ")
    rest = answer.err.splitlines()[1:]
    assert all(line.startswith("  ") for line in rest), answer.err
    for text in texts:
        assert text in answer.err


def test_wrong_token(config: Json, command: Command, tmp_path: Path) -> None:
    for user in config["users"]:
        user["user"]["token"] = "wrong"
    refused(explain(command, config, tmp_path), config["clusters"][0]["cluster"]["server"], "401")


def test_wrong_token_by_flag(config: Json, command: Command, tmp_path: Path) -> None:
    refused(explain(command, config, tmp_path, "--token", "wrong"), "401")


def test_nobody_listens(config: Json, command: Command, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{free.getsockname()[1]}"
    for cluster in config["clusters"]:
        cluster["cluster"]["server"] = server
    refused(explain(command, config, tmp_path), server, "Connection refused")


def test_server_that_does_not_answer(config: Json, command: Command, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        server = f"https://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        refused(explain(command, config, tmp_path, "--server", server, "--request-timeout", "300ms"), server, "0.3 s")
        assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("flag", "names"), [("--context", ("admin", "restricted")), ("--user", ()), ("--cluster", ())], ids=str
)
def test_unknown_name(config: Json, command: Command, tmp_path: Path, flag: str, names: Sequence[str]) -> None:
    refused(explain(command, config, tmp_path, flag, "absent"), '"absent"' if not names else "absent", *names)


def test_authority_of_somebody_else(config: Json, command: Command, tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    for cluster in config["clusters"]:
        cluster["cluster"]["certificate-authority-data"] = base64.b64encode(pem).decode()
    refused(explain(command, config, tmp_path), "certificate", "check the certificate authority")


def test_authority_that_is_no_certificate(config: Json, command: Command, tmp_path: Path) -> None:
    for cluster in config["clusters"]:
        cluster["cluster"]["certificate-authority-data"] = base64.b64encode(b"no certificate").decode()
    refused(explain(command, config, tmp_path), "certificate")


def test_name_that_the_certificate_lacks(config: Json, command: Command, tmp_path: Path) -> None:
    refused(explain(command, config, tmp_path, "--tls-server-name", "other.example.com"), "other.example.com")


def test_plain_http(config: Json, command: Command, tmp_path: Path) -> None:
    server = config["clusters"][0]["cluster"]["server"].replace("https:", "http:")
    refused(explain(command, config, tmp_path, "--server", server), server)


def test_no_kubeconfig(command: Command, tmp_path: Path) -> None:
    path = str(tmp_path / "absent")
    refused(command("explain", "pod/none", "--kubeconfig", path), path)


def test_as_a_program(control_plane: ControlPlane, config: Json, tmp_path: Path) -> None:
    good = ["--kubeconfig", str(control_plane.kubeconfig), "-n", "default"]
    refused(subprocess_run("explain", "pod/none", *good, "--context", "absent"), "absent")
    refused(subprocess_run("explain", "pod/none", *good, "--token", "wrong"), "401")


def certificate(directory: Path) -> bytes:
    """A certificate authority that signed nothing."""
    key, path = directory / "key.pem", directory / "ca.pem"
    subject = ["-subj", "/CN=somebody else", "-days", "1", "-nodes"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject, "-keyout", str(key), "-out", str(path)],
        check=True,
        capture_output=True,
    )
    return path.read_bytes()


# What a user may see


@pytest.fixture
def waiting(referee: Referee) -> Referee:
    """A pod that asks for two devices where there is one."""
    cluster = referee.cluster
    gpu = cluster.device_class()
    cluster.publish([device("gpu-0")], pool="pool", node=cluster.node())
    cluster.pod(claims={"gpu": cluster.claim([request(gpu, count=2)])})
    cluster.unschedulable("pod")
    return referee


def grant(cluster: Cluster, here: Sequence[str] = (), everywhere: Sequence[str] = ()) -> None:
    """Allow a user of the test's name to list some resources in the namespace, and others everywhere."""
    rbac = "rbac.authorization.k8s.io"
    for prefix, resources in (("", here), ("Cluster", everywhere)):
        rules = []
        for resource in resources:
            plural, _, group = resource.partition(".")
            rules.append({"apiGroups": [group], "resources": [plural], "verbs": ["list"]})
        metadata = {"name": cluster.name("reader")}
        kind = f"{prefix}Role"
        cluster.create({"apiVersion": f"{rbac}/v1", "kind": kind, "metadata": metadata, "rules": rules})
        cluster.create(
            {
                "apiVersion": f"{rbac}/v1",
                "kind": f"{kind}Binding",
                "metadata": metadata,
                "roleRef": {"apiGroup": rbac, "kind": kind, "name": metadata["name"]},
                "subjects": [{"apiGroup": rbac, "kind": "User", "name": cluster.namespace}],
            }
        )
    for resources, namespace in ((here, cluster.namespace), (everywhere, "")):
        for resource in resources:
            _wait_allowed(cluster, resource, namespace)


def _wait_allowed(cluster: Cluster, resource: str, namespace: str) -> None:
    plural, _, group = resource.partition(".")
    asked = {"group": group, "resource": plural, "verb": "list", "namespace": namespace}
    api = "authorization.k8s.io/v1"
    review = {
        "apiVersion": api,
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": cluster.namespace, "resourceAttributes": asked},
    }
    wait(lambda: cluster.api.create(review)["status"]["allowed"] or None, f"the role for {resource} to be known")


def as_granted(referee: Referee, target: str) -> Answer:
    """What explain says to the user of the test's name."""
    return referee.explain(target, "--as", referee.cluster.namespace)


def undetermined(answer: Answer, *texts: str) -> None:
    assert answer.code == 3, answer.text
    for text in texts:
        assert text in answer.text


def forbidden(resource: str) -> str:
    return f"list {resource} is forbidden"


def quoted(text: str) -> str:
    """A text as it is inside JSON."""
    return json.dumps(text)[1:-1]


def test_listing_is_all_it_needs(waiting: Referee) -> None:
    """A user without any right to write gets the same answer."""
    grant(waiting.cluster, everywhere=[*NAMESPACED, *CLUSTER_WIDE])
    as_admin = waiting.explain("pod/pod")
    as_reader = as_granted(waiting, "pod/pod")
    assert as_reader.code == 1
    assert as_reader.causes == as_admin.causes
    assert as_reader.report["answer"] == as_admin.report["answer"]


def test_may_see_nothing(waiting: Referee) -> None:
    answer = waiting.explain("pod/pod", context="restricted")
    undetermined(answer, forbidden("pods"))
    assert answer.err.startswith("error: ")


def test_impersonation(waiting: Referee) -> None:
    undetermined(waiting.explain("pod/pod", "--as", "somebody"), forbidden("pods"))
    member = waiting.explain("pod/pod", "--as", "somebody", "--as-group", "system:masters")
    assert member.code == 1


def test_may_not_see_slices(waiting: Referee) -> None:
    cluster_wide = [resource for resource in CLUSTER_WIDE if "slices" not in resource]
    grant(waiting.cluster, everywhere=[*NAMESPACED, *cluster_wide])
    answer = as_granted(waiting, "pod/pod")
    undetermined(answer, quoted(forbidden(f"resourceslices.{DRA}")))
    assert "which devices exist is unknown" in answer.report["answer"]


def test_may_not_see_classes(waiting: Referee) -> None:
    cluster_wide = [resource for resource in CLUSTER_WIDE if "classes" not in resource]
    grant(waiting.cluster, everywhere=[*NAMESPACED, *cluster_wide])
    answer = as_granted(waiting, "pod/pod")
    undetermined(answer, quoted(forbidden(f"deviceclasses.{DRA}")))


def test_may_not_see_other_namespaces(waiting: Referee) -> None:
    """Nothing hidden helps where there is one device too few; claims elsewhere may hold what seems free."""
    cluster = waiting.cluster
    grant(cluster, here=NAMESPACED, everywhere=CLUSTER_WIDE)
    too_many = as_granted(waiting, "pod/pod")
    assert too_many.code == 1, too_many.text
    cluster.claim([request(cluster.name("gpu"))], "one")
    hidden = as_granted(waiting, "claim/one")
    undetermined(hidden, "which devices are held is unknown", quoted(forbidden(f"resourceclaims.{DRA}")))


def test_may_not_see_nodes(waiting: Referee) -> None:
    cluster_wide = [resource for resource in CLUSTER_WIDE if resource != "nodes"]
    grant(waiting.cluster, everywhere=[*NAMESPACED, *cluster_wide])
    answer = as_granted(waiting, "pod/pod")
    assert answer.code in (1, 3), answer.text
    assert quoted(forbidden("nodes")) in answer.out


def test_may_not_see_the_pod_only(waiting: Referee) -> None:
    grant(waiting.cluster, here=[resource for resource in NAMESPACED if resource != "pods"], everywhere=CLUSTER_WIDE)
    undetermined(as_granted(waiting, "pod/pod"), forbidden("pods"))


def test_object_that_does_not_exist(waiting: Referee) -> None:
    answer = waiting.explain("pod/pot")
    assert answer.code == 2
    assert f"Pod pot does not exist in namespace {waiting.cluster.namespace}; did you mean pod?" in answer.err


# Kubernetes' defaults: one version, no DeviceTaintRules


def test_defaults_profile(defaults_plane: ControlPlane, command: Command, tmp_path: Path) -> None:
    if not defaults_plane.schedules:
        pytest.skip("no scheduler in ready-made programs")
    cluster = Cluster(defaults_plane, "defaults-explain")
    try:
        referee = Referee(cluster, command, tmp_path)
        gpu = cluster.device_class()
        cluster.publish([device("gpu-0"), device("gpu-1")], pool="pool", node=cluster.node())
        scheduled = referee.fits("one", claims={"gpu": cluster.claim([request(gpu)], "one")})
        assert scheduled.devices("gpu") == ["pool/gpu-0"]
        answer = referee.rejected("devices-held", "two", claims={"gpu": cluster.claim([request(gpu, count=2)])})
        notes = [note.partition(":")[0] for note in answer.report["notes"]]
        random = [f"schedulers of {release_of(defaults_plane)} try pools in random order"]
        assert notes == (random if expected(RANDOM_ORDER, defaults_plane) else [])
        kubeconfig = str(defaults_plane.kubeconfig)
        program = subprocess_run("explain", "pod/two", "-n", cluster.namespace, "--kubeconfig", kubeconfig)
        assert program.code == 1
        assert program.err == ""
        assert "Pod defaults-explain/two cannot be scheduled" in program.out
    finally:
        cluster.remove()
