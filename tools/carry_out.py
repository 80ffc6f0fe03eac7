"""Carries out what an answer says would help, by editing objects as a user, a driver or a controller would.

Nothing here asks the code that made the proof: it reads the printed JSON (where a fix has no data, its sentence) and
edits the objects as the API server would have them then.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from tools.asked import JSON, Asked

MORE = "-another"
_STATES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
HOSTNAME = "kubernetes.io/hostname"
EXTENDED = "<extended-resources>"
_HARDWARE = re.compile(r"(^|/)(\w*uuid|serial(number)?|guid|uniqueid)$", re.IGNORECASE)


def fixes(answer: JSON) -> Iterator[tuple[str, JSON]]:
    """Every proved fix of an answer: its sentence, and its data (``changes`` if it has any, ``proof``, ``whatIf``)."""
    for cause in answer["causes"]:
        if "proof" in cause["fix"]:
            yield cause["fix"]["text"], {**cause["fix"], "cause": cause}
    for fix in answer.get("fixes", ()):
        yield " and ".join(change["text"] for change in fix["changes"]), fix


def carried_out(asked: Asked, answer: JSON, text: str, fix: JSON) -> Asked:
    """The question after a fix, with all that its proof says it rests on."""
    edit = _Edit(asked.copied(), answer)
    others = list(fix["proof"].get("changedAsWell", ()))
    for cause in answer["causes"]:
        own = {"claim": cause.get("claim"), "request": cause.get("request", "").split("/")[0]}
        if own in others and "changes" in cause["fix"]:
            others.remove(own)
            edit.make(cause["fix"]["text"], {**cause["fix"], "cause": cause})
    assert not others, f"their fixes are not offered: {others}"
    edit.make(text, fix)
    for other in fix["proof"].get("setAside", ()):
        edit.drop_request(other["request"], other["claim"])
    edit.forget_the_past()
    return edit.asked if not edit.arguments else edit.asked.copied(edit.arguments)


class _Edit:
    """One copy of the files, and what is done to it."""

    def __init__(self, asked: Asked, answer: JSON) -> None:
        self.asked = asked
        self.subject = answer["subject"]
        self.arguments: list[str] = []

    def make(self, text: str, fix: JSON) -> None:
        if "changes" not in fix:
            self._as_told(text, fix)
            return
        for change in fix["changes"]:
            getattr(self, "_" + change["kind"].replace("-", "_"))(change)

    # Finding objects

    def _named(self, kind: str, name: str, namespace: str = "") -> JSON:
        found = [
            entry
            for entry in self.asked.of(kind)
            if entry["metadata"]["name"] == name
            and (not namespace or entry["metadata"].get("namespace", "default") == namespace)
        ]
        assert found, f"{kind} {namespace}/{name} is not there"
        return found[-1]

    def _pod_spec(self) -> JSON:
        """The spec of the pod that is asked about, or that of the workload which makes it."""
        name, namespace = self.subject["name"], self.subject["namespace"]
        for entry in self.asked.objects():
            meta = entry["metadata"]
            if meta.get("namespace", namespace) != namespace:
                continue
            if entry["kind"] == "Pod" and meta.get("name", meta.get("generateName", "")) == name:
                spec: JSON = entry["spec"]
                return spec
            template = entry.get("spec", {}).get("jobTemplate", entry).get("spec", {}).get("template")
            if entry["kind"] != "Pod" and template is not None and name.startswith(meta["name"]):
                made: JSON = template["spec"]
                return made
        raise AssertionError(f"no pod {namespace}/{name}")

    def _devices(self, claim: JSON) -> JSON:
        """``spec.devices`` of a claim, or of the template that it would be made from."""
        name, namespace = claim["name"], claim.get("namespace", "")
        for entry in self.asked.of("ResourceClaim"):
            meta = entry["metadata"]
            if meta["name"] == name and meta.get("namespace", namespace) == namespace:
                found: JSON = entry["spec"]["devices"]
                return found
        for entry in self.asked.of("ResourceClaimTemplate"):
            if entry["metadata"]["name"] == name and self.subject["kind"] == "ResourceClaim":
                return entry["spec"]["spec"]["devices"]  # type: ignore[no-any-return]
        for used in self._pod_spec().get("resourceClaims", ()):
            if "resourceClaimTemplateName" in used and name.endswith(f"-{used['name']}"):
                template = self._named("ResourceClaimTemplate", used["resourceClaimTemplateName"])
                return template["spec"]["spec"]["devices"]  # type: ignore[no-any-return]
        raise AssertionError(f"no claim {namespace}/{name}")

    def _request(self, target: JSON) -> JSON:
        """The request or subrequest of a change."""
        (claim,) = target["claims"]
        name, _, sub = target["request"].partition("/")
        for request in self._devices(claim)["requests"]:
            if request["name"] == name:
                if sub:
                    return next(entry for entry in request["firstAvailable"] if entry["name"] == sub)
                return request.get("exactly", request)  # type: ignore[no-any-return]
        raise AssertionError(f"no request {target['request']}")

    def _selector(self, change: JSON) -> JSON:
        number = int(re.findall(r"selectors\[(\d+)\]", change["target"]["field"])[0])
        return self._request(change["target"])["selectors"][number]["cel"]  # type: ignore[no-any-return]

    def _nodes(self, change: JSON) -> list[JSON]:
        return [self._named("Node", name) for name in change["target"]["nodes"]]

    # What was asked for

    def _lower_count(self, change: JSON) -> None:
        target = change["target"]
        if "claims" in target:
            request = self._request(target)
            request["allocationMode"], request["count"] = "ExactCount", change["to"]
            return
        resource, container = re.findall(r"the limit of (\S+) in container (\S+) to", change["text"])[0]
        spec = self._pod_spec()
        (found,) = [
            entry for entry in (*spec["containers"], *spec.get("initContainers", ())) if entry["name"] == container
        ]
        for amounts in found["resources"].values():
            if resource in amounts:
                amounts[resource] = str(change["to"])

    def _use_class(self, change: JSON) -> None:
        self._request(change["target"])["deviceClassName"] = change["to"]

    def _tolerate_device_taints(self, change: JSON) -> None:
        more = [{"operator": "Equal", **taint} for taint in change["to"]]
        self._request(change["target"]).setdefault("tolerations", []).extend(more)

    def _lower_capacity(self, change: JSON) -> None:
        name = re.findall(r"capacity.requests\[(.*)\]", change["target"]["field"])[0]
        request = self._request(change["target"])
        request.setdefault("capacity", {}).setdefault("requests", {})[name] = change["to"]

    def _replace_value(self, change: JSON) -> None:
        cel, term = self._selector(change), change["target"]["term"]
        assert cel["expression"].count(term) == 1, f"{term} is not once in {cel['expression']}"
        if change["from"] == term:
            cel["expression"] = cel["expression"].replace(term, change["to"])
            return
        # As a word of its own: a number may be a part of a name. A function follows what it is called on.
        before = r"[\w-]" if "(" in change["from"] else r"[\w.-]"
        pattern = rf"(?<!{before}){re.escape(change['from'])}(?![\w.-])"
        assert len(re.findall(pattern, term)) == 1, f"{change['from']} is not once in {term}"
        changed = re.sub(pattern, change["to"].replace("\\", r"\\"), term)
        cel["expression"] = cel["expression"].replace(term, changed)

    def _drop_term(self, change: JSON) -> None:
        cel, term = self._selector(change), change["target"]["term"]
        parts = cel["expression"].split("&&")
        same = [part for part in parts if part.strip() == term.strip()]
        if same:
            parts.remove(same[0])
            cel["expression"] = "&&".join(parts) or "true"
            return
        assert cel["expression"].count(term) == 1, f"{term} is not once in {cel['expression']}"
        cel["expression"] = cel["expression"].replace(term, "true")

    def _drop_constraint(self, change: JSON) -> None:
        (claim,) = change["target"]["claims"]
        devices = self._devices(claim)
        same = [
            entry for entry in devices["constraints"] if {"requests": [], **entry} == {"requests": [], **change["from"]}
        ]
        assert same, f"no constraint {change['from']}"
        devices["constraints"] = [entry for entry in devices["constraints"] if entry is not same[0]]

    def drop_request(self, name: str, claim: JSON | None = None) -> None:
        """The pod without one request."""
        if claim is not None and claim["name"] == EXTENDED:
            self._drop_resource(name)
            return
        dropped = 0
        for devices in [self._devices(claim)] if claim is not None else list(self._all_devices()):
            before = len(devices["requests"])
            devices["requests"] = [entry for entry in devices["requests"] if entry["name"] != name.split("/")[0]]
            dropped += before - len(devices["requests"])
            for constraint in devices.get("constraints", ()):
                if "requests" in constraint:
                    own = (entry for entry in constraint["requests"] if entry.split("/")[0] != name.split("/")[0])
                    constraint["requests"] = list(own)
            devices["constraints"] = [entry for entry in devices.get("constraints", ()) if entry.get("requests", True)]
            if not devices["requests"]:
                self._drop_claim(devices)
        assert dropped, f"no request {name}"

    def _drop_resource(self, request: str) -> None:
        """Without the extended resource that the scheduler calls ``container-0-request-1``."""
        container, number = map(int, re.findall(r"\d+", request))
        spec = self._pod_spec()
        amounts = [*spec.get("initContainers", ()), *spec["containers"]][container]["resources"]
        limits = amounts.get("limits", {})
        resource = sorted({**limits, **amounts.get("requests", {})})[number]
        for table in amounts.values():
            if isinstance(table, dict):
                table.pop(resource, None)

    def _all_devices(self) -> Iterator[JSON]:
        """``spec.devices`` of what the subject asks for."""
        if self.subject["kind"] == "ResourceClaim":
            yield self._devices(self.subject)
            return
        pod = self._pod()
        made = {entry["name"]: entry.get("resourceClaimName") for entry in _statuses(pod)} if pod is not None else {}
        for used in self._pod_spec().get("resourceClaims", ()):
            name = used.get("resourceClaimName") or made.get(used["name"])
            if name:
                yield self._devices({"name": name, "namespace": self.subject["namespace"]})
            elif "resourceClaimTemplateName" in used:
                template = self._named("ResourceClaimTemplate", used["resourceClaimTemplateName"])
                yield template["spec"]["spec"]["devices"]

    def _drop_claim(self, devices: JSON) -> None:
        """The pod without a claim that asks for nothing."""
        spec = self._pod_spec()
        left = []
        for used, own in zip(spec["resourceClaims"], list(self._all_devices()), strict=True):
            if own is not devices:
                left.append(used)
        gone = {used["name"] for used in spec["resourceClaims"]} - {used["name"] for used in left}
        spec["resourceClaims"] = left
        pod = self._pod()
        if pod is not None and "resourceClaimStatuses" in pod.get("status", {}):
            pod["status"]["resourceClaimStatuses"] = [entry for entry in _statuses(pod) if entry["name"] not in gone]
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            uses = container.get("resources", {}).get("claims")
            if uses:
                container["resources"]["claims"] = [entry for entry in uses if entry["name"] not in gone]

    def _pod(self) -> JSON | None:
        for entry in self.asked.of("Pod"):
            meta = entry["metadata"]
            same = meta.get("namespace", self.subject["namespace"]) == self.subject["namespace"]
            if same and meta.get("name") == self.subject["name"]:
                return entry
        return None

    # The pod's placement, and nodes

    def _tolerate_node_taint(self, change: JSON) -> None:
        self._pod_spec().setdefault("tolerations", []).append({"operator": "Equal", **_taint(change["to"])})

    def _drop_node_selector(self, change: JSON) -> None:
        key = re.findall(r"nodeSelector\[(.*)\]", change["target"]["field"])[0]
        del self._pod_spec()["nodeSelector"][key]

    def _drop_node_affinity(self, change: JSON) -> None:
        del self._pod_spec()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    def _lower_request(self, change: JSON) -> None:
        """In the pod, and in those that its owner makes of the same template."""
        ((container, resource),) = re.findall(
            r"containers\[(.*?)\]\.resources\.requests\[(.*)\]", change["target"]["field"]
        )
        pod = self._pod()
        owned = (pod or {}).get("metadata", {}).get("ownerReferences")
        others = [
            entry["spec"]
            for entry in self.asked.of("Pod")
            if owned and entry["metadata"].get("ownerReferences") == owned
        ]
        for spec in (self._pod_spec(), *others):
            for each in (*spec["containers"], *spec.get("initContainers", ())):
                if each["name"] == container:
                    each.setdefault("resources", {}).setdefault("requests", {})[resource] = change["to"]

    def _mend_nodes(self, change: JSON) -> None:
        for node in self._nodes(change):
            taint = _taint(change["from"])
            node["spec"]["taints"] = [entry for entry in node["spec"]["taints"] if entry["key"] != taint["key"]]

    def _uncordon_nodes(self, change: JSON) -> None:
        for node in self._nodes(change):
            node["spec"].pop("unschedulable", None)
            taints = node["spec"].get("taints", ())
            node["spec"]["taints"] = [entry for entry in taints if entry["key"] != "node.kubernetes.io/unschedulable"]

    # Drivers

    def _complete_pool(self, change: JSON) -> None:
        """The driver publishes the slices that are missing, of which nobody knows the devices."""
        (pool,) = change["target"]["pools"]
        own = [
            entry
            for entry in self.asked.of("ResourceSlice")
            if entry["spec"]["driver"] == pool["driver"] and entry["spec"]["pool"]["name"] == pool["name"]
        ]
        newest = max(entry["spec"]["pool"]["generation"] for entry in own)
        own = [entry for entry in own if entry["spec"]["pool"]["generation"] == newest]
        assert len(own) == change["from"]
        for entry in own:
            entry["spec"]["pool"]["resourceSliceCount"] = max(change["to"], len(own))
        for number in range(change["to"] - len(own)):
            more = copy.deepcopy(own[0])
            more["metadata"] = {"name": f"{own[0]['metadata']['name']}{MORE}-{number}"}
            more["spec"].pop("sharedCounters", None)
            more["spec"]["devices"] = []
            self.asked.add(more)

    # Who holds devices

    def _release_claims(self, change: JSON) -> None:
        # A pod may hold several of the claims, which go with it.
        keys = ((holder, holder["claim"]["namespace"], holder["claim"]["name"]) for holder in change["holders"])
        for holder, space, claim in [(holder, at, self._named("ResourceClaim", name, at)) for holder, at, name in keys]:
            users = (claim.get("status") or {}).get("reservedFor") or []
            if holder["state"] == "foreign":
                claim["status"] = {}
            elif holder["state"] == "unused" or (holder["state"] == "ended" and not self._pods_of(users, space)):
                self.asked.remove(claim)
            else:
                for user in list(users):
                    self._end(user, space)

    def _end_pods(self, change: JSON) -> None:
        for named in change["target"]["pods"]:
            pod = self._named("Pod", named["name"], named["namespace"])
            self._end({"resource": "pods", **_who(pod)}, named["namespace"])

    def _pods_of(self, users: list[JSON], space: str) -> list[JSON]:
        return [pod for user in users for pod in self.asked.of("Pod") if _is(pod, user, space)]

    def _end(self, user: JSON, space: str) -> None:
        """A pod is gone, whether it is in the files or not, and the claim controller has done its work."""
        assert (space, user["name"]) != (self.subject["namespace"], self.subject["name"]), "it would end itself"
        for pod in self._pods_of([user], space):
            self.asked.remove(pod)
        for claim in list(self.asked.of("ResourceClaim")):
            if claim["metadata"].get("namespace", "default") != space:
                continue
            owners = claim["metadata"].get("ownerReferences", ())
            if any(owner.get("controller") and _same_pod(owner, user) for owner in owners if owner["kind"] == "Pod"):
                self.asked.remove(claim)
                continue
            users = (claim.get("status") or {}).get("reservedFor") or []
            left = [other for other in users if other.get("resource") != "pods" or not _same_pod(other, user)]
            if len(left) < len(users):
                claim["status"]["reservedFor"] = left
                if not left:
                    claim["status"] = {}

    # Another node

    def _add_node(self, change: JSON) -> None:
        (like,) = change["target"]["nodes"]
        old = self._named("Node", like)
        node = copy.deepcopy(old)
        host = old["metadata"].get("labels", {}).get(HOSTNAME, like)
        texts = {like: like + MORE, host: host + MORE}
        meta = node["metadata"]
        meta.update(name=like + MORE, uid=f"uid-{like}{MORE}")
        spec = node.setdefault("spec", {})
        # What says how a node is says nothing of the next one.
        spec.pop("unschedulable", None)
        spec["taints"] = [taint for taint in spec.get("taints", ()) if not taint["key"].startswith(_STATES)]
        for field in ("labels", "annotations"):
            if field in meta:
                meta[field] = {key: texts.get(text, text) for key, text in meta[field].items()}
        self.asked.add(node)
        pools = self._own_pools(like, host)
        for entry in list(self.asked.of("ResourceSlice")):
            spec = entry["spec"]
            if pools.get((spec["driver"], spec["pool"]["name"])) == spec["pool"]["generation"]:
                self.asked.add(_of_another(entry, texts))
        for entry in list(self.asked.of("CSINode")):
            if entry["metadata"]["name"] == like:
                self.asked.add({**entry, "metadata": {"name": like + MORE}})
        for pod in list(self.asked.of("Pod")):
            owners = pod["metadata"].get("ownerReferences", ())
            daemon = any(owner.get("controller") and owner["kind"] in ("DaemonSet", "Node") for owner in owners)
            if daemon and pod["spec"].get("nodeName") == like:
                self._daemon_of_another(pod, like, {pool for _, pool in pools})

    def _own_pools(self, like: str, host: str) -> dict[tuple[str, str], int]:
        """The newest generation of each pool that only this node can use."""
        slices: dict[tuple[str, str], list[JSON]] = {}
        for entry in self.asked.of("ResourceSlice"):
            slices.setdefault((entry["spec"]["driver"], entry["spec"]["pool"]["name"]), []).append(entry["spec"])
        return {
            pool: max(spec["pool"]["generation"] for spec in specs)
            for pool, specs in slices.items()
            if all(_only_for(spec, like, host) for spec in specs)
        }

    def _daemon_of_another(self, pod: JSON, like: str, pools: set[str]) -> None:
        """A DaemonSet's pod on the new node, with its own claims for devices there."""
        more = copy.deepcopy(pod)
        more["metadata"].update(name=pod["metadata"]["name"] + MORE, uid=f"uid-{pod['metadata']['name']}{MORE}")
        more["spec"]["nodeName"] = like + MORE
        self.asked.add(more)
        for entry in _statuses(more):
            for claim in list(self.asked.of("ResourceClaim")):
                if claim["metadata"]["name"] != entry.get("resourceClaimName"):
                    continue
                made = copy.deepcopy(claim)
                made["metadata"].update(name=claim["metadata"]["name"] + MORE, uid=f"uid-{entry['name']}{MORE}")
                made["metadata"]["ownerReferences"] = [
                    {"apiVersion": "v1", "kind": "Pod", "controller": True, **_who(more)}
                ]
                results = made.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
                for result in results:
                    if result["pool"] in pools:
                        result["pool"] += MORE
                made.get("status", {})["reservedFor"] = [{"resource": "pods", **_who(more)}]
                self.asked.add(made)
            entry["resourceClaimName"] = entry.get("resourceClaimName", "") + MORE

    # Fixes that are sentences only

    def _as_told(self, text: str, fix: JSON) -> None:
        proof = fix["proof"]
        if proof["with"] == "without-the-request":
            self.drop_request(proof["request"], fix["cause"]["claim"])
            return
        for pattern, make in _SENTENCES:
            if found := re.search(pattern, text):
                make(self, found, fix["cause"])
                return
        raise AssertionError(f"nobody knows how to do this: {text}")

    def _each_selector(self) -> Iterator[JSON]:
        for entry in self.asked.of("DeviceClass"):
            yield from (selector["cel"] for selector in entry.get("spec", {}).get("selectors", ()))
        for devices in self._all_devices():
            for request in devices["requests"]:
                for spec in request.get("firstAvailable", [request.get("exactly", request)]):
                    yield from (selector["cel"] for selector in spec.get("selectors", ()))

    def _guard(self, found: re.Match[str], cause: JSON) -> None:
        expression = next(fact["value"] for fact in cause["evidence"] if fact.get("language") == "cel")
        attribute = found[1][len("has(") : -1]
        done = 0
        for cel in self._each_selector():
            if "".join(cel["expression"].split()) == "".join(expression.split()) or attribute in cel["expression"]:
                cel["expression"] = f"{found[1]} && ({cel['expression']})"
                done += 1
        assert done

    def _reword(self, found: re.Match[str], _: JSON) -> None:
        # A domain may end another one; the name of an attribute stands behind a dot.
        start = r"(?<![\w.])" if "." in found[2] else r"\b"
        done = 0
        for cel in self._each_selector():
            done += found[2] in cel["expression"]
            cel["expression"] = re.sub(rf"{start}{re.escape(found[2])}\b", found[1], cel["expression"])
        assert done

    def _requote(self, found: re.Match[str], cause: JSON) -> None:
        expression = next(fact["value"] for fact in cause["evidence"] if fact.get("language") == "cel")
        wrong = next(fact["value"] for fact in cause["evidence"] if fact["field"] == "CEL run-time error")
        done = 0
        for cel in self._each_selector():
            if cel["expression"] == expression:
                cel["expression"] = expression.replace(wrong.removeprefix("in "), found[1])
                done += cel["expression"] != expression
        assert done

    def _match_attribute(self, found: re.Match[str], cause: JSON) -> None:
        (constraint,) = self._constraints(cause)
        constraint["matchAttribute"] = found[1]

    def _constraints(self, cause: JSON) -> list[JSON]:
        told = cause["text"] + " ".join(str(fact["what"]) + str(fact["value"]) for fact in cause["evidence"])
        return [
            constraint
            for devices in self._all_devices()
            for constraint in devices.get("constraints", ())
            if constraint.get("matchAttribute", constraint.get("distinctAttribute")) in told
        ]

    def _drop_named_constraint(self, found: re.Match[str], _: JSON) -> None:
        done = 0
        for devices in self._all_devices():
            kept = [entry for entry in devices.get("constraints", ()) if entry.get(found[1]) != found[2]]
            done += len(devices.get("constraints", ())) - len(kept)
            devices["constraints"] = kept
        assert done

    def _single_requests(self, found: re.Match[str], cause: JSON) -> None:
        devices = self._devices(cause["claim"])
        (request,) = [entry for entry in devices["requests"] if entry["name"] == cause["request"]]
        names = [f"{request['name']}-{number}" for number in range(int(found[1]))]
        place = devices["requests"].index(request)
        devices["requests"][place : place + 1] = [
            {**request, "name": name, "exactly": {**request["exactly"], "count": 1}} for name in names
        ]
        for constraint in devices.get("constraints", ()):
            if request["name"] in constraint.get("requests", ()):
                constraint["requests"] = [name for name in constraint["requests"] if name != request["name"]] + names

    def _claim_for_each(self, _: re.Match[str], cause: JSON) -> None:
        space, name = cause["claim"]["namespace"], cause["claim"]["name"]
        claim = self._named("ResourceClaim", name, space)
        spec, requests = self._pod_spec(), claim["spec"]["devices"]["requests"]
        (used,) = [entry for entry in spec["resourceClaims"] if entry.get("resourceClaimName") == name]
        for request in requests[1:]:
            made = copy.deepcopy(claim)
            made["metadata"].update(name=f"{name}-{request['name']}", uid=f"uid-{name}-{request['name']}")
            made["spec"]["devices"]["requests"] = [request]
            self.asked.add(made)
            more = {"name": f"{used['name']}-{request['name']}", "resourceClaimName": made["metadata"]["name"]}
            spec["resourceClaims"].append(more)
        del requests[1:]

    def _one_claim(self, found: re.Match[str], cause: JSON) -> None:
        """The pod names the claim of a pod of the same template, in place of its own."""
        space, name = cause["claim"]["namespace"], cause["claim"]["name"]
        own, others = self._entry(found[1], name), []
        for pod in self.asked.of("Pod"):
            if pod["metadata"].get("namespace") == space and pod["spec"].get("nodeName"):
                entries = {entry["name"] for entry in _of_template(pod["spec"], found[1])}
                others += [entry["resourceClaimName"] for entry in _statuses(pod) if entry["name"] in entries]
        del own["resourceClaimTemplateName"]
        own["resourceClaimName"] = others[0]
        self.asked.remove(self._named("ResourceClaim", name, space))

    def _entry(self, template: str, claim: str) -> JSON:
        """What the pod in question says of its claim, which it forgets to have been made."""
        (entry, *_) = _of_template(self._pod_spec(), template)
        for pod in self.asked.of("Pod"):
            if any(status.get("resourceClaimName") == claim for status in _statuses(pod)):
                pod["status"]["resourceClaimStatuses"] = [
                    status for status in _statuses(pod) if status.get("resourceClaimName") != claim
                ]
        return entry

    def _gate(self, found: re.Match[str], _: JSON) -> None:
        self.arguments += ["--feature-gates", f"{found[1]}=true"]

    def _release(self, found: re.Match[str], _: JSON) -> None:
        self.arguments += ["--kubernetes-version", found[1]]

    def _no_resource(self, found: re.Match[str], _: JSON) -> None:
        entry = self._named("DeviceClass", found[2])
        assert entry["spec"].pop("extendedResourceName") == found[1]

    def _repair_driver(self, found: re.Match[str], cause: JSON) -> None:
        """Pods run on the node, and the driver publishes what it does on the first node that the cause calls alike."""
        driver, node = found[1], found[2]
        for pod in self.asked.of("Pod"):
            if pod["spec"].get("nodeName") == node:
                for container in pod.get("status", {}).get("containerStatuses", ()):
                    container |= {"ready": True, "state": {"running": {}}, "lastState": {}, "restartCount": 0}
        fact = next(fact for fact in cause["evidence"] if fact["field"] == "are alike and have")
        like = fact["about"]["nodes"][0]
        for entry in list(self.asked.of("ResourceSlice")):
            if entry["spec"]["driver"] == driver and entry["spec"].get("nodeName") == node:
                self.asked.remove(entry)
        for entry in list(self.asked.of("ResourceSlice")):
            if entry["spec"]["driver"] == driver and entry["spec"].get("nodeName") == like:
                made = copy.deepcopy(entry)
                made["metadata"]["name"] += f"-on-{node}"
                made["spec"]["nodeName"] = made["spec"]["pool"]["name"] = node
                self.asked.add(made)

    def forget_the_past(self) -> None:
        """The scheduler has not looked at pods since: what it said of them before does not stand."""
        for entry in list(self.asked.of("Event")):
            if entry.get("reason") == "FailedScheduling":
                self.asked.remove(entry)
        for pod in self.asked.of("Pod"):
            pod.get("status", {}).pop("conditions", None)


Told = Callable[[_Edit, re.Match[str], JSON], None]
_SENTENCES: list[tuple[str, Told]] = [
    (r"^Guard it: put (has\(.*?\)) && before the term", _Edit._guard),
    (r'^Write (quantity\("\w+"\)) or quantity', _Edit._requote),
    (r"^Write matchAttribute: (\S+), which these devices have", _Edit._match_attribute),
    (r"^Write (\d+) requests of count 1", _Edit._single_requests),
    (r"^Write (\S+) in place of (\S+): (?:no device has|it is the domain)", _Edit._reword),
    (r"^Drop or loosen the constraint (matchAttribute|distinctAttribute) (\S+),", _Edit._drop_named_constraint),
    (r"^Put the requests into claims of their own", _Edit._claim_for_each),
    (r"To share, let all name one ResourceClaim: template (\S+) makes one for each", _Edit._one_claim),
    (r"let the pods name one ResourceClaim instead of template ([^\s,]+)", _Edit._one_claim),
    (r"^Template (\S+) makes a claim for each pod, and each claim takes a device", _Edit._one_claim),
    (r"^Turn the feature gate (\w+) on", _Edit._gate),
    (r"^Upgrade the scheduler to ([\d.]+) or later", _Edit._release),
    (r"^(?:Repair|Let) driver (\S+)(?: run)? on node (\S+?)[:.] ", _Edit._repair_driver),
    (r"^Remove extendedResourceName (\S+) from DeviceClass (\S+)\.$", _Edit._no_resource),
]


def _who(pod: JSON) -> JSON:
    return {field: pod["metadata"][field] for field in ("name", "uid") if field in pod["metadata"]}


def _of_template(spec: JSON, template: str) -> list[JSON]:
    return [
        resource_claim
        for resource_claim in spec.get("resourceClaims") or ()
        if resource_claim.get("resourceClaimTemplateName") == template
    ]


def _statuses(pod: JSON) -> list[JSON]:
    found: list[JSON] = (pod.get("status") or {}).get("resourceClaimStatuses") or []
    return found


def _is(pod: JSON, user: JSON, namespace: str) -> bool:
    """Whether an entry of reservedFor means this pod."""
    meta = pod["metadata"]
    return meta.get("namespace", "default") == namespace and _same_pod(meta, user)


def _same_pod(one: JSON, other: JSON) -> bool:
    """Whether two say the same name, and no two uids."""
    return one.get("name") == other.get("name") and one.get("uid", other.get("uid")) == other.get("uid", one.get("uid"))


def _taint(text: str) -> dict[str, str]:
    """``key=value:effect`` or ``key:effect``."""
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    return {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}


def _only_for(spec: JSON, node: str, host: str) -> bool:
    """Whether only this node can use the devices of a slice."""
    scopes = spec.get("devices") or [] if spec.get("perDeviceNodeSelection") else [spec]
    return bool(scopes) and all(scope.get("nodeName") == node or _pins(scope, host) for scope in scopes)


def _pins(scope: JSON, host: str) -> bool:
    terms = (scope.get("nodeSelector") or {}).get("nodeSelectorTerms", ())
    return len(terms) == 1 and any(
        entry["key"] == HOSTNAME and entry["operator"] == "In" and entry["values"] == [host]
        for entry in terms[0].get("matchExpressions", ())
    )


def _of_another(entry: JSON, texts: dict[str, str]) -> JSON:
    """What the driver publishes on the new node: other hardware of the same kind, without a fault."""
    made = copy.deepcopy(entry)
    made["metadata"] = {"name": entry["metadata"]["name"] + MORE, "uid": f"uid-{entry['metadata']['name']}{MORE}"}
    spec = made["spec"]
    spec["pool"]["name"] += MORE
    for scope in (spec, *(spec.get("devices") or ())):
        if "nodeName" in scope:
            scope["nodeName"] = texts[scope["nodeName"]]
        for term in (scope.get("nodeSelector") or {}).get("nodeSelectorTerms", ()):
            for want in (*term.get("matchExpressions", ()), *term.get("matchFields", ())):
                want["values"] = [texts.get(value, value) for value in want.get("values", ())]
    for device in spec.get("devices") or ():
        whole: Any = device.get("basic", device)
        whole.pop("taints", None)
        for name, value in whole.get("attributes", {}).items():
            if _HARDWARE.search(name):
                whole["attributes"][name] = {"string": f"{next(iter(value.values()))}{MORE}"}
    return made
