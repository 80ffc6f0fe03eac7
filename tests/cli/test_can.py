"""``kubectl dra can``: which permissions a command lacks, by what the server answers, and the role with all of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from kubectl_dra.cli.can import NEEDS
from kubectl_dra.cluster.snapshot import Permission
from tests.cli.conftest import ROOT, Dra
from tools.api_server import Answer, APIServer, Asked, forbidden

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def server() -> Iterator[APIServer]:
    started = APIServer()
    started.routes[WHO] = {"status": {"userInfo": {"username": "jane"}}}
    yield started
    started.close()


def reviewing(server: APIServer, missing: Collection[str], within: Collection[str] = ()) -> None:
    """Let the server refuse these, written as ``list nodes``; those ``within`` namespace team are allowed there."""

    def answer(asked: Asked) -> Answer:
        attributes = json.loads(asked.body)["spec"]["resourceAttributes"]
        name = f"{attributes['verb']} {attributes['resource']}"
        local = attributes.get("namespace") == "team" and name in within
        return Answer(201, {"status": {"allowed": local or name not in missing}})

    server.routes[REVIEWS] = answer


def test_yes(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ())
    ran = dra("can", "explain", "--kubeconfig", server.kubeconfig(tmp_path))
    assert (ran.code, ran.out) == (0, "yes: nothing that explain needs is missing\n")
    assert {asked.method for asked in server.asked} == {"POST"} and {*server.paths()} == {REVIEWS}


def test_no_says_what_and_how(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ("list nodes", "list pods", "list csinodes"), within=("list pods",))
    config = server.kubeconfig(tmp_path)
    ran = dra("can", "explain", "--kubeconfig", config)
    assert ran.code == 1
    assert ran.out.startswith(
        "no: explain lacks 2 permissions, and 1 optional for some answers:\n"
        "  list pods (allowed in namespace team)\n  list nodes\n  list csinodes.storage.k8s.io (optional)\n"
    )
    assert "examples/rbac/read.yaml" in ran.out and "--user=jane" in ran.out and "writes" in ran.out.lower()
    # Whoever grants it is somebody else, in the same cluster.
    given = [shlex.split(line.partition("$ ")[2]) for line in ran.out.splitlines() if "$ " in line]
    assert all(words[0] == "kubectl" and words[-2:] == ["--kubeconfig", config] for words in given) and len(given) == 2


def test_what_only_some_pods_need(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ("list csinodes",))
    ran = dra("can", "fit", "--kubeconfig", server.kubeconfig(tmp_path))
    assert ran.code == 0 and ran.out.startswith("yes, but some answers are undetermined without 1 further permission:")


def test_all_commands(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ("create devicetaintrules", "list csinodes"))
    ran = dra("can", "--kubeconfig", server.kubeconfig(tmp_path))
    rows = {line.split()[0]: line.split()[1] for line in ran.out.splitlines()[1 : 1 + len(NEEDS)]}
    assert ran.code == 1 and rows.keys() == NEEDS.keys()
    assert [rows[name] for name in ("taint", "untaint", "explain", "top")] == ["no", "yes", "partly", "yes"]
    # Its commands say what they allow, and who lacks more is told how to ask.
    said = ran.flat
    assert "An administrator allows what only reads with these commands" in said
    assert "For taint, which can end pods, ask about it by itself: $ kubectl dra can taint --kubeconfig" in said


def test_what_is_needed_comes_first_and_what_is_optional_is_counted(
    dra: Dra, server: APIServer, tmp_path: Path
) -> None:
    server.serve_group(v1=("resourceslices",))
    kueue = {"version": "v1beta2", "resources": [{"resource": "localqueues"}]}
    server.routes["/apis"] = {"items": [{"metadata": {"name": "kueue.x-k8s.io"}, "versions": [kueue]}]}
    everything = [permission for needs in NEEDS.values() for permission in (*needs.always, *needs.sometimes)]
    reviewing(server, [f"{permission.verb} {permission.resource}" for permission in everything])
    config = server.kubeconfig(tmp_path)
    lines = dra("can", "explain", "--kubeconfig", config).out.splitlines()
    needed = len(NEEDS["explain"].always)
    assert lines[1 : needed + 1] == [f"  {permission}" for permission in NEEDS["explain"].always]
    assert lines[needed + 1].endswith(" optional: --full")
    whole = dra("can", "explain", "--full", "--kubeconfig", config).out
    assert "localqueues.kueue.x-k8s.io" in whole and "csinodes.storage.k8s.io (optional)\n" in whole
    assert "optional: --full" not in whole
    # A layer that the cluster does not run needs no permission.
    assert not [name for name in ("volcano", "run.ai", "kubevirt", "karpenter", "clusterqueues") if name in whole]
    table = dra("can", "--kubeconfig", config).out
    assert max(map(len, table.split("An administrator")[0].splitlines())) <= 80
    assert "as explain" in table


def test_the_administrator_is_not_who_lacks_the_permission(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ("list nodes",))
    config = server.kubeconfig(tmp_path)
    ran = dra("can", "top", "--kubeconfig", config, "--context", "test")
    commands = [line for line in ran.out.splitlines() if "$ " in line]
    assert ran.code == 1 and len(commands) == 2
    assert all("--context" not in line and f"--kubeconfig {config}" in line for line in commands)
    assert "An administrator" in ran.out


@pytest.mark.parametrize(("flags", "name"), [((), ""), (("--as", "jim"), "jim")])
def test_who_asks_is_known_or_said_to_be_missing(
    dra: Dra, server: APIServer, tmp_path: Path, flags: tuple[str, ...], name: str
) -> None:
    """A role without a binding gives nobody anything."""
    reviewing(server, ("list nodes",))
    server.routes[WHO] = forbidden("selfsubjectreviews")
    ran = dra("can", "top", *flags, "--kubeconfig", server.kubeconfig(tmp_path))
    said = ran.flat
    assert ("Nobody has the role yet: the server does not say who asks." in said) is (not name)
    assert f"kubectl create clusterrolebinding kubectl-dra-read-{name}" in said or not name
    assert (
        name or "kubectl create clusterrolebinding kubectl-dra-read --clusterrole=kubectl-dra-read --user=NAME" in said
    )


def test_json(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ("list pods",), within=("list pods",))
    ran = dra("can", "claims", "-o", "json", "--kubeconfig", server.kubeconfig(tmp_path))
    found = ran.valid("can")
    (command,) = found["items"]
    assert (found["user"], command["allowed"], command["role"]) == ("jane", False, "kubectl-dra-read")
    assert command["missing"] == [
        {"verb": "list", "resource": "pods", "group": "", "always": True, "allowedIn": ["team"]}
    ]


def test_a_service_account(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    reviewing(server, ("list nodes",))
    server.routes[WHO] = {"status": {"userInfo": {"username": "system:serviceaccount:ml:bot"}}}
    ran = dra("can", "top", "--kubeconfig", server.kubeconfig(tmp_path))
    assert "--serviceaccount=ml:bot" in ran.out


def test_a_server_that_does_not_say(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    server.routes[REVIEWS] = forbidden("selfsubjectaccessreviews")
    ran = dra("can", "top", "--kubeconfig", server.kubeconfig(tmp_path))
    assert ran.code == 3 and "does not say what you may do" in ran.err


def test_a_command_that_is_none(dra: Dra) -> None:
    ran = dra("can", "explian")
    assert ran.code == 2 and "did you mean explain?" in ran.err
    other = " ".join(dra("can", "lint").err.split())
    assert 'can does not cover "lint"; of files it asks no cluster' in other and "kubectl dra can snapshot" in other
    other = " ".join(dra("can", "demo").err.split())
    assert 'can does not cover "demo"; it covers explain, fit, share, ' in other


@pytest.mark.parametrize("role", sorted({needs.role for needs in NEEDS.values()}))
def test_the_roles_have_exactly_what_commands_need(role: str) -> None:
    rules: list[dict[str, Any]] = yaml.safe_load((ROOT / "examples" / "rbac" / f"{role}.yaml").read_text())["rules"]
    has = {
        Permission(verb, resource, group)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    needs = [need for need in NEEDS.values() if need.role == role]
    assert has == {permission for need in needs for permission in (*need.always, *need.sometimes)}


@pytest.mark.parametrize("command", ["claims", "devices", "drivers", "top", "explain"])
def test_what_a_command_reads_is_what_it_needs(command: str, dra: Dra, server: APIServer, tmp_path: Path) -> None:
    kinds = ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "devicetaintrules")
    server.serve_group(v1=kinds)
    server.routes["/version"] = {"gitVersion": "v1.36.1"}
    for plural in kinds:
        server.routes[f"/apis/resource.k8s.io/v1/{plural}"] = []
    for plural in ("pods", "nodes", "namespaces", "resourcequotas", "events"):
        server.routes[f"/api/v1/{plural}"] = []
    server.routes["/apis/apps/v1/daemonsets"] = []
    dra(command, *(("-A",) if command == "explain" else ()), "--kubeconfig", server.kubeconfig(tmp_path))
    known = {permission.resource for permission in (*NEEDS[command].always, *NEEDS[command].sometimes)}
    read = {asked.path.rpartition("/")[2] for asked in server.asked}
    assert read - known <= {"version", "api", "apis", "v1", "resource.k8s.io", "v1beta2", "v1beta1"}
    assert {permission.resource for permission in NEEDS[command].always} <= read


def test_a_refusal_leads_here(dra: Dra, server: APIServer, tmp_path: Path) -> None:
    server.serve_group(v1=("resourceslices",))
    server.routes["/apis/resource.k8s.io/v1/resourceslices"] = forbidden("resourceslices.resource.k8s.io")
    ran = dra("devices", "--kubeconfig", server.kubeconfig(tmp_path))
    assert ran.code == 3 and 'the command "can" says what is missing' in ran.err
    ran = dra("taint", "--list", "--kubeconfig", server.kubeconfig(tmp_path))
    assert 'the command "can"' in f"{ran.out}{ran.err}"


def test_a_misspelt_namespace_is_told_where_namespaces_may_be_listed(
    dra: Dra, server: APIServer, tmp_path: Path
) -> None:
    reviewing(server, ())
    config = server.kubeconfig(tmp_path)
    server.routes["/api/v1/namespaces"] = {
        "apiVersion": "v1",
        "kind": "NamespaceList",
        "items": [{"metadata": {"name": "team"}}],
    }
    ran = dra("can", "explain", "-n", "taem", "--kubeconfig", config)
    assert ran.code == 2 and ran.err == "error: -n: there is no namespace taem; did you mean team?\n"
    server.routes["/api/v1/namespaces"] = forbidden("namespaces")
    assert dra("can", "explain", "-n", "taem", "--kubeconfig", config).code == 0


@pytest.mark.parametrize("command", NEEDS)
def test_the_role_of_a_command_has_all_that_it_needs_and_no_more(dra: Dra, command: str) -> None:
    ran = dra("can", command, "--needs", "-o", "yaml", "--server", "https://127.0.0.1:1")
    role = yaml.safe_load(ran.out)
    assert ran.code == 0 and (role["kind"], role["metadata"]["name"]) == ("ClusterRole", f"kubectl-dra-{command}")
    rules = {
        Permission(verb, resource, group)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert rules == {*NEEDS[command].always, *NEEDS[command].sometimes}


def test_what_commands_need_is_told_without_a_server(dra: Dra) -> None:
    told = dra("can", "--needs", "--server", "https://127.0.0.1:1")
    assert told.code == 0 and told.out.startswith("No server was asked: ")
    assert "explain, fit, share, ui, metrics\n  list: resourceslices, " in told.out
    assert dra("can", "--needs", "-o", "yaml").code == 2
    silent = dra("can", "taint", "--server", "https://127.0.0.1:1")
    assert silent.code == 2 and "without a server: kubectl dra can taint --needs" in silent.err
