"""Each rule once broken and once just kept; the answers are those of a real API server of 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from kubectl_dra.admission.server.verdict import check
from kubectl_dra.api.releases import Release, default_features
from tests.admission.server.support import BASES, REMOVE, Edits, edited, repeated

REQUEST = "spec/devices/requests/0"
EXACTLY = f"{REQUEST}/exactly"
SUBREQUEST = "spec/devices/requests/1/firstAvailable/0"
DEVICE = "spec/devices/0"
RANGE = f"{DEVICE}/capacity/cores/requestPolicy/validRange"
VALUES = f"{DEVICE}/capacity/bw/requestPolicy/validValues"
CONTAINER = "spec/containers/0"
EXPRESSION = "nodeSelectorTerms/0/matchExpressions/0"
SELECTOR: dict[str, Any] = {"cel": {"expression": "true"}}
CONFIG: dict[str, Any] = {"opaque": {"driver": "d", "parameters": {}}}
COUNTERS = {f"c{number}": {"value": "1"} for number in range(33)}
FEW_COUNTERS = dict(list(COUNTERS.items())[:32])
BW = "spec.devices[0].capacity[bw].requestPolicy"
CORES = "spec.devices[0].capacity[cores].requestPolicy"
ALTERNATIVES = "spec/devices/requests/1/firstAvailable"
IMPLICIT = "deviceclass.resource.kubernetes.io/"
ADMIN: Edits = {"metadata/namespace": "admin", f"{EXACTLY}/adminAccess": True}


HUGE = {"hugepages-2Mi": "4Mi", "cpu": "1"}
WITH_SIDECAR: Edits = {
    f"{CONTAINER}/resources/requests": {"cpu": "1"},
    "spec/initContainers": [
        {"name": "sidecar", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "before", "image": "x", "resources": {"requests": {"cpu": "2"}}},
    ],
}


def scoped(operator: str, values: list[str] | None) -> dict[str, Any]:
    """A quota's selector of one scope."""
    return {"matchExpressions": [{"scopeName": "PriorityClass", "operator": operator, "values": values}]}


def attributed(count: int) -> dict[str, Any]:
    """A device with many attributes."""
    return {"name": "a", "attributes": {f"a{number}": {"int": number} for number in range(count)}}


# Rule, base, the server's field and reason, edits that keep the rule, edits that break it.
# fmt: off
CASES: list[tuple[str, str, str, str, Edits, Edits]] = [
    ("name-missing", "claim", "metadata.name", "Required",
     {"metadata/name": REMOVE, "metadata/generateName": "x-"}, {"metadata": {}}),
    ("name-invalid", "claim", "metadata.name", "Invalid", {"metadata/name": "a.b"}, {"metadata/name": "A"}),
    ("labels-invalid", "claim", "metadata.labels", "Invalid",
     {"metadata/labels": {"a": ""}}, {"metadata/labels": {"a": "-"}}),
    ("annotations-invalid", "claim", "metadata.annotations", "Invalid",
     {"metadata/annotations": {"A/b": "-"}}, {"metadata/annotations": {"a/b/c": ""}}),
    ("generation-negative", "claim", "metadata.generation", "Invalid",
     {"metadata/generation": 0}, {"metadata/generation": -1}),
    ("generation-negative", "quota", "metadata.generation", "Invalid", {}, {"metadata/generation": -1}),
    # Of kinds that it counts changes of, the server takes no generation.
    ("name-invalid", "class", "metadata.name", "Invalid", {"metadata/generation": -1}, {"metadata/name": "A"}),
    ("name-invalid", "slice", "metadata.name", "Invalid", {"metadata/generation": -1}, {"metadata/name": "A"}),
    ("finalizer-invalid", "claim", "metadata.finalizers[0]", "Invalid",
     {"metadata/finalizers": ["a/b"]}, {"metadata/finalizers": ["b"]}),
    # claims
    ("requests-too-many", "claim", "spec.devices.requests", "TooMany",
     {"spec": {"devices": {"requests": repeated(32, exactly={"deviceClassName": "c"})}}},
     {"spec": {"devices": {"requests": repeated(33)}}}),
    ("request-name-duplicate", "claim", "spec.devices.requests[1]", "Duplicate",
     {"spec/devices/requests/1/name": "gpu2", "spec/devices/constraints": []}, {"spec/devices/requests/1/name": "gpu"}),
    ("request-name-invalid", "claim", "spec.devices.requests[0].name", "Invalid",
     {f"{REQUEST}/name": "a" * 63, "spec/devices/constraints": [], "spec/devices/config": []},
     {f"{REQUEST}/name": "a.b"}),
    ("request-kind-missing", "claim", "spec.devices.requests[0]", "Required", {}, {EXACTLY: REMOVE}),
    ("request-kind-both", "claim", "spec.devices.requests[0]", "Invalid",
     {f"{REQUEST}/firstAvailable": []}, {f"{REQUEST}/firstAvailable": [{}]}),
    ("sub-requests-too-many", "claim", "spec.devices.requests[1].firstAvailable", "TooMany",
     {ALTERNATIVES: [{"name": "a", "deviceClassName": "c"}, *repeated(7, deviceClassName="c")]},
     {ALTERNATIVES: repeated(9)}),
    ("sub-request-name-duplicate", "claim", "spec.devices.requests[1].firstAvailable[1]", "Duplicate",
     {}, {"spec/devices/requests/1/firstAvailable/1/name": "a"}),
    ("sub-request-name-invalid", "claim", "spec.devices.requests[1].firstAvailable[1].name", "Invalid",
     {}, {"spec/devices/requests/1/firstAvailable/1/name": "B"}),
    ("class-name-missing", "claim", "spec.devices.requests[0].exactly.deviceClassName", "Required",
     {}, {f"{EXACTLY}/deviceClassName": ""}),
    ("class-name-invalid", "claim", "spec.devices.requests[1].firstAvailable[0].deviceClassName", "Invalid",
     {f"{SUBREQUEST}/deviceClassName": "a" * 253}, {f"{SUBREQUEST}/deviceClassName": "a/b"}),
    ("allocation-mode-unknown", "claim", "spec.devices.requests[0].exactly.allocationMode", "NotSupported",
     {f"{EXACTLY}/allocationMode": ""}, {f"{EXACTLY}/allocationMode": "all"}),
    ("count-not-positive", "claim", "spec.devices.requests[0].exactly.count", "Invalid",
     {f"{EXACTLY}/count": 0}, {f"{EXACTLY}/count": -1}),
    ("count-with-all", "claim", "spec.devices.requests[0].exactly.count", "Invalid",
     {f"{EXACTLY}/allocationMode": "All", f"{EXACTLY}/count": 0}, {f"{EXACTLY}/allocationMode": "All"}),
    ("selectors-too-many", "claim", "spec.devices.requests[0].exactly.selectors", "TooMany",
     {f"{EXACTLY}/selectors": [SELECTOR] * 32}, {f"{EXACTLY}/selectors": [SELECTOR] * 33}),
    ("selector-cel-missing", "claim", "spec.devices.requests[0].exactly.selectors[0].cel", "Required",
     {}, {f"{EXACTLY}/selectors/0": {}}),
    ("cel-too-long", "class", "spec.selectors[0].cel.expression", "TooLong",
     {"spec/selectors/0/cel/expression": "true" + " " * 10236},
     {"spec/selectors/0/cel/expression": "true" + " " * 10237}),
    ("cel-compile", "class", "spec.selectors[0].cel.expression", "Invalid",
     {"spec/selectors/0/cel/expression": "true"}, {"spec/selectors/0/cel/expression": ""}),
    ("cel-program", "class", "spec.selectors[0].cel.expression", "InternalError",
     {"spec/selectors/0/cel/expression": 'int("1") == 1'}, {"spec/selectors/0/cel/expression": 'int("abc") == 1'}),
    ("cel-cost", "class", "spec.selectors[0].cel.expression", "Forbidden",
     {"spec/selectors/0/cel/expression": 'quantity("1") == quantity("2")'},
     {"spec/selectors/0/cel/expression": 'quantity("1") != quantity("2")'}),
    ("toleration-key-invalid", "claim", "spec.devices.requests[0].exactly.tolerations[0].key", "Invalid",
     {f"{EXACTLY}/tolerations/0/key": ""}, {f"{EXACTLY}/tolerations/0/key": "-"}),
    ("toleration-operator", "claim", "spec.devices.requests[0].exactly.tolerations[0].operator", "NotSupported",
     {f"{EXACTLY}/tolerations/0/operator": ""}, {f"{EXACTLY}/tolerations/0/operator": "In"}),
    ("toleration-exists-value", "claim", "spec.devices.requests[0].exactly.tolerations[0].value", "Invalid",
     {f"{EXACTLY}/tolerations": [{"operator": "Exists"}] * 100}, {f"{EXACTLY}/tolerations/0/operator": "Exists"}),
    ("toleration-value-invalid", "claim", "spec.devices.requests[0].exactly.tolerations[0].value", "Invalid",
     {f"{EXACTLY}/tolerations/0/value": "A_b"}, {f"{EXACTLY}/tolerations/0/value": "_"}),
    ("toleration-effect", "claim", "spec.devices.requests[0].exactly.tolerations[0].effect", "NotSupported",
     {f"{EXACTLY}/tolerations/0/effect": ""}, {f"{EXACTLY}/tolerations/0/effect": "PreferNoSchedule"}),
    ("constraints-too-many", "claim", "spec.devices.constraints", "TooMany",
     {"spec/devices/constraints": [{"matchAttribute": "a/b"}] * 32}, {"spec/devices/constraints": [{}] * 33}),
    ("constraint-attribute-missing", "claim", "spec.devices.constraints[0]", "Required",
     {"spec/devices/constraints/0": {"distinctAttribute": "a/b"}}, {"spec/devices/constraints/0": {}}),
    ("constraint-attribute-format", "claim", "spec.devices.constraints[0].matchAttribute", "Invalid",
     {"spec/devices/constraints/0/matchAttribute": "a/b/c"}, {"spec/devices/constraints/0/matchAttribute": "b"}),
    ("constraint-attribute-long", "claim", "spec.devices.constraints[0].matchAttribute", "TooLong",
     {"spec/devices/constraints/0/matchAttribute": "A.b/" + "c" * 32},
     {"spec/devices/constraints/0/matchAttribute": "a.b/" + "c" * 33}),
    ("constraint-requests-too-many", "claim", "spec.devices.constraints[0].requests", "TooMany",
     {"spec/devices/constraints/0/requests": []}, {"spec/devices/constraints/0/requests": ["gpu"] * 33}),
    ("constraint-request-unknown", "claim", "spec.devices.constraints[0].requests[0]", "Invalid",
     {"spec/devices/constraints/0/requests": ["alt/b"]}, {"spec/devices/constraints/0/requests": ["b"]}),
    ("constraint-request-duplicate", "claim", "spec.devices.constraints[0].requests[1]", "Duplicate",
     {"spec/devices/constraints/0/requests": ["alt", "alt/a"]},
     {"spec/devices/constraints/0/requests": ["alt", "alt"]}),
    ("config-too-many", "claim", "spec.devices.config", "TooMany",
     {"spec/devices/config": [CONFIG] * 32}, {"spec/devices/config": [CONFIG] * 33}),
    ("config-opaque-missing", "claim", "spec.devices.config[0].opaque", "Required",
     {}, {"spec/devices/config/0/opaque": None}),
    ("config-driver-missing", "claim", "spec.devices.config[0].opaque.driver", "Required",
     {}, {"spec/devices/config/0/opaque/driver": REMOVE}),
    ("config-driver-invalid", "claim", "spec.devices.config[0].opaque.driver", "Invalid",
     {"spec/devices/config/0/opaque/driver": "A.B"}, {"spec/devices/config/0/opaque/driver": "a_b"}),
    ("config-driver-long", "claim", "spec.devices.config[0].opaque.driver", "TooLong",
     {"spec/devices/config/0/opaque/driver": "a" * 63}, {"spec/devices/config/0/opaque/driver": "a" * 64}),
    ("config-parameters-missing", "class", "spec.config[0].opaque.parameters", "Required",
     {"spec/config/0/opaque/parameters": {}}, {"spec/config/0/opaque/parameters": None}),
    ("config-parameters-not-object", "class", "spec.config[0].opaque.parameters", "Invalid",
     {}, {"spec/config/0/opaque/parameters": []}),
    ("config-parameters-long", "class", "spec.config[0].opaque.parameters", "TooLong",
     {"spec/config/0/opaque/parameters": {"a": "x" * 10232}}, {"spec/config/0/opaque/parameters": {"a": "x" * 10233}}),
    ("config-requests-too-many", "claim", "spec.devices.config[0].requests", "TooMany",
     {}, {"spec/devices/config/0/requests": ["gpu"] * 33}),
    ("config-request-unknown", "claim", "spec.devices.config[0].requests[0]", "Invalid",
     {"spec/devices/config/0/requests": ["alt"]}, {"spec/devices/config/0/requests": ["gpu/a"]}),
    ("config-request-duplicate", "claim", "spec.devices.config[0].requests[1]", "Duplicate",
     {}, {"spec/devices/config/0/requests": ["gpu", "gpu"]}),
    ("template-metadata-forbidden", "template", "spec.metadata.name", "Forbidden",
     {"spec/metadata/name": ""}, {"spec/metadata/name": "x"}),
    ("template-labels-invalid", "template", "spec.metadata.labels", "Invalid",
     {"spec/metadata/labels": {"a/b": "c"}}, {"spec/metadata/labels": {"a": "b/c"}}),
    ("admin-access-namespace", "claim", "spec.devices.requests[0].adminAccess", "Forbidden",
     ADMIN, {f"{EXACTLY}/adminAccess": True}),
    # classes
    ("class-selectors-too-many", "class", "spec.selectors", "TooMany",
     {"spec/selectors": [SELECTOR] * 32}, {"spec/selectors": [SELECTOR] * 33}),
    ("class-config-too-many", "class", "spec.config", "TooMany",
     {"spec/config": [CONFIG] * 32}, {"spec/config": [CONFIG] * 33}),
    ("extended-resource-name", "class", "spec.extendedResourceName", "Invalid",
     {"spec/extendedResourceName": "a" * 244 + "/b"}, {"spec/extendedResourceName": "a" * 245 + "/b"}),
    # slices
    ("slice-driver-missing", "slice", "spec.driver", "Required", {}, {"spec/driver": ""}),
    ("slice-driver-invalid", "slice", "spec.driver", "Invalid", {"spec/driver": "A"}, {"spec/driver": "a_b"}),
    ("slice-driver-long", "slice", "spec.driver", "TooLong", {"spec/driver": "a" * 63}, {"spec/driver": "a" * 64}),
    ("pool-name-missing", "slice", "spec.pool.name", "Required", {}, {"spec/pool/name": ""}),
    ("pool-name-invalid", "slice", "spec.pool.name", "Invalid",
     {"spec/pool/name": "a/b/c"}, {"spec/pool/name": "a//c"}),
    ("pool-name-long", "slice", "spec.pool.name", "TooLong",
     {"spec/pool/name": "a" * 253}, {"spec/pool/name": "a/" * 127 + "b"}),
    ("pool-count", "slice", "spec.pool.resourceSliceCount", "Invalid",
     {"spec/pool/resourceSliceCount": 1}, {"spec/pool/resourceSliceCount": REMOVE}),
    ("pool-generation", "slice", "spec.pool.generation", "Invalid",
     {"spec/pool/generation": 0}, {"spec/pool/generation": -1}),
    ("slice-node-missing", "slice", "spec", "Required", {}, {"spec/nodeName": None}),
    ("slice-node-multiple", "slice", "spec", "Invalid", {}, {"spec/allNodes": True}),
    ("slice-node-name-empty", "slice", "spec.nodeName", "Invalid", {}, {"spec/nodeName": "", "spec/allNodes": True}),
    ("slice-node-name-invalid", "slice", "spec.nodeName", "Invalid", {"spec/nodeName": "a.b"}, {"spec/nodeName": "A"}),
    ("slice-bool-false", "slice", "spec.allNodes", "Invalid", {"spec/allNodes": None}, {"spec/allNodes": False}),
    ("node-selector-terms", "selected", "spec.nodeSelector.nodeSelectorTerms", "Invalid",
     {"spec/nodeSelector/nodeSelectorTerms": [{}]}, {"spec/nodeSelector/nodeSelectorTerms": [{}, {}]}),
    ("node-selector-expr", "selected", "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values", "Required",
     {f"spec/nodeSelector/{EXPRESSION}": {"key": "a", "operator": "Gt", "values": ["x"]}},
     {f"spec/nodeSelector/{EXPRESSION}/values": []}),
    ("node-selector-expr", "selected", "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values", "Forbidden",
     {f"spec/nodeSelector/{EXPRESSION}": {"key": "a", "operator": "Exists"}},
     {f"spec/nodeSelector/{EXPRESSION}/operator": "Exists"}),
    ("devices-and-counters", "counters", "spec", "Invalid", {"spec/devices": None}, {"spec/devices": []}),
    ("devices-too-many", "slice", "spec.devices", "TooMany",
     {"spec/devices": repeated(128)}, {"spec/devices": repeated(129)}),
    ("devices-too-many", "slice", "spec.devices", "TooMany",
     {"spec/devices": repeated(64, taints=[{"key": "a", "effect": "None"}])},
     {"spec/devices": repeated(65, taints=[{}])}),
    ("device-name-duplicate", "slice", "spec.devices[1]", "Duplicate",
     {"spec/devices": repeated(2)}, {"spec/devices": [{"name": "a"}] * 2}),
    ("device-name-invalid", "slice", "spec.devices[0].name", "Invalid",
     {f"{DEVICE}/name": "9a"}, {f"{DEVICE}/name": ""}),
    ("device-keys-too-many", "slice", "spec.devices[0]", "Invalid", {DEVICE: attributed(32)}, {DEVICE: attributed(33)}),
    ("device-values-too-many", "slice", "spec.devices[0]", "Invalid",
     {DEVICE: {"name": "a"}}, {DEVICE: attributed(49)}),
    ("attribute-key", "slice", "spec.devices[0].attributes", "Invalid",
     {f"{DEVICE}/attributes": {"a/b/c": {"int": 1}}}, {f"{DEVICE}/attributes": {"a-b": {"int": 1}}}),
    ("attribute-one-value", "slice", "spec.devices[0].attributes[model]", "Invalid",
     {f"{DEVICE}/attributes/model": {"string": ""}}, {f"{DEVICE}/attributes/model": {}}),
    ("attribute-string-long", "slice", "spec.devices[0].attributes[model].string", "TooLong",
     {f"{DEVICE}/attributes/model/string": "ü" * 32}, {f"{DEVICE}/attributes/model/string": "ü" * 33}),
    ("attribute-version", "slice", "spec.devices[0].attributes[model].version", "Invalid",
     {f"{DEVICE}/attributes/model": {"version": "1.0.0-rc.1+b"}}, {f"{DEVICE}/attributes/model": {"version": "v1.0"}}),
    ("attribute-version", "slice", "spec.devices[0].attributes[model].version", "TooLong",
     {f"{DEVICE}/attributes/model": {"version": "1.0." + "9" * 60}},
     {f"{DEVICE}/attributes/model": {"version": "1.0." + "9" * 61}}),
    ("capacity-key", "slice", "spec.devices[0].capacity", "Invalid",
     {f"{DEVICE}/capacity": {"A.b/c": {}}}, {f"{DEVICE}/capacity": {"/c": {}}}),
    ("policy-needs-multi", "slice", BW, "Forbidden",
     {f"{DEVICE}/capacity": {}, f"{DEVICE}/allowMultipleAllocations": False},
     {f"{DEVICE}/allowMultipleAllocations": False}),
    ("policy-both", "slice", CORES, "Forbidden",
     {f"{DEVICE}/capacity/cores/requestPolicy": {}}, {f"{DEVICE}/capacity/cores/requestPolicy/validValues": ["1"]}),
    ("policy-default-missing", "slice", CORES + ".default", "Required",
     {f"{DEVICE}/capacity/cores/requestPolicy": {"default": "99"}},
     {f"{DEVICE}/capacity/cores/requestPolicy/default": None}),
    ("policy-values-too-many", "slice", BW + ".validValues", "TooMany",
     {VALUES: [str(n) for n in range(1, 11)]}, {VALUES: [str(n) for n in range(11)]}),
    ("policy-values-order", "slice", BW + ".validValues[1]", "Invalid", {VALUES: ["2", "3"]}, {VALUES: ["3", "2"]}),
    ("policy-values-duplicate", "slice", BW + ".validValues[1]", "Duplicate",
     {VALUES: ["1", "1500m"], f"{DEVICE}/capacity/bw/requestPolicy/default": "1"}, {VALUES: ["1200m", "1500m", "3"]}),
    ("policy-values-default", "slice", BW + ".validValues", "Invalid", {VALUES: ["2000m"]}, {VALUES: ["3"]}),
    ("policy-values-large", "slice", BW + ".validValues[1]", "Invalid", {VALUES: ["2", "10"]}, {VALUES: ["2", "11"]}),
    ("policy-range-min-missing", "slice", CORES + ".validRange.min", "Required", {RANGE: {"min": "1"}}, {RANGE: {}}),
    ("policy-range-min", "slice", CORES + ".validRange.min", "Invalid",
     {f"{RANGE}/min": "2", f"{RANGE}/max": None}, {f"{RANGE}/min": "3", f"{RANGE}/max": None}),
    ("policy-range-max", "slice", CORES + ".validRange.max", "Invalid", {f"{RANGE}/max": "2"}, {f"{RANGE}/max": "1"}),
    ("policy-range-step", "slice", CORES + ".validRange.step", "Invalid",
     {f"{RANGE}/step": "-1"}, {f"{RANGE}/step": "3"}),
    ("taints-too-many", "slice", "spec.devices[0].taints", "TooMany",
     {f"{DEVICE}/taints": [{"key": "a", "effect": "None"}] * 16}, {f"{DEVICE}/taints": [{}] * 17}),
    ("taint-key", "slice", "spec.devices[0].taints[0].key", "Invalid", {}, {f"{DEVICE}/taints/0/key": ""}),
    ("taint-value", "slice", "spec.devices[0].taints[0].value", "Invalid",
     {f"{DEVICE}/taints/0/value": ""}, {f"{DEVICE}/taints/0/value": "a/b"}),
    ("taint-effect", "slice", "spec.devices[0].taints[0].effect", "Required",
     {f"{DEVICE}/taints/0/effect": "NoExecute"}, {f"{DEVICE}/taints/0/effect": ""}),
    ("counter-sets-too-many", "counters", "spec.sharedCounters", "TooMany",
     {"spec/sharedCounters": repeated(8, counters=FEW_COUNTERS)}, {"spec/sharedCounters": repeated(9)}),
    ("counter-set-name", "counters", "spec.sharedCounters[0].name", "Required",
     {"spec/sharedCounters/0/name": "a"}, {"spec/sharedCounters/0/name": ""}),
    ("counters-missing", "counters", "spec.sharedCounters[0].counters", "Required",
     {}, {"spec/sharedCounters/0/counters": {}}),
    ("counters-too-many", "counters", "spec.sharedCounters[0].counters", "TooMany",
     {"spec/sharedCounters/0/counters": FEW_COUNTERS}, {"spec/sharedCounters/0/counters": COUNTERS}),
    ("counter-name", "counters", "spec.sharedCounters[0].counters", "Invalid",
     {"spec/sharedCounters/0/counters": {"a": {"value": "-1"}}}, {"spec/sharedCounters/0/counters": {"A": {}}}),
    ("consumes-too-many", "slice", "spec.devices[0].consumesCounters", "TooMany",
     {}, {f"{DEVICE}/consumesCounters": [{}] * 3}),
    ("consumes-duplicate", "slice", "spec.devices[0].consumesCounters[1]", "Duplicate",
     {f"{DEVICE}/consumesCounters/1": {"counterSet": "b", "counters": {"a": {}}}},
     {f"{DEVICE}/consumesCounters/1": {"counterSet": "set-0"}}),
    ("consumes-set", "slice", "spec.devices[0].consumesCounters[0].counterSet", "Invalid",
     {}, {f"{DEVICE}/consumesCounters/0/counterSet": "A"}),
    ("consumes-counters", "slice", "spec.devices[0].consumesCounters[0].counters", "TooMany",
     {f"{DEVICE}/consumesCounters/0/counters": FEW_COUNTERS}, {f"{DEVICE}/consumesCounters/0/counters": COUNTERS}),
    ("per-device-node-missing", "per-device", "spec.devices[0]", "Required", {}, {f"{DEVICE}/nodeName": REMOVE}),
    ("per-device-node-multiple", "per-device", "spec.devices[0]", "Invalid", {}, {f"{DEVICE}/allNodes": True}),
    ("per-device-node-unexpected", "slice", "spec.devices[0]", "Invalid",
     {f"{DEVICE}/allNodes": None}, {f"{DEVICE}/allNodes": False}),
    ("binding-too-many", "slice", "spec.devices[0].bindingConditions", "TooMany",
     {f"{DEVICE}/bindingConditions": list("abcd")}, {f"{DEVICE}/bindingConditions": list("abcde")}),
    ("binding-name", "slice", "spec.devices[0].bindingConditions[0]", "Invalid",
     {}, {f"{DEVICE}/bindingConditions/0": "a b"}),
    ("binding-duplicate", "slice", "spec.devices[0].bindingConditions[1]", "Duplicate",
     {f"{DEVICE}/bindingConditions": ["a", "b"]}, {f"{DEVICE}/bindingConditions": ["a", "a"]}),
    ("binding-overlap", "slice", "spec.devices[0].bindingFailureConditions[0]", "Invalid",
     {}, {f"{DEVICE}/bindingFailureConditions": ["example.com/ready"]}),
    ("binding-pair", "slice", "spec.devices[0].bindingConditions", "Invalid",
     {f"{DEVICE}/bindingConditions": [], f"{DEVICE}/bindingFailureConditions": []},
     {f"{DEVICE}/bindingConditions": []}),
    # taint rules and requests for pools
    ("rule-selector-driver", "rule", "spec.deviceSelector.driver", "Required",
     {"spec/deviceSelector": {}}, {"spec/deviceSelector/driver": ""}),
    ("rule-selector-pool", "rule", "spec.deviceSelector.pool", "Invalid",
     {"spec/deviceSelector": None}, {"spec/deviceSelector/pool": "/"}),
    ("rule-selector-device", "rule", "spec.deviceSelector.device", "Invalid",
     {"spec/deviceSelector/device": None}, {"spec/deviceSelector/device": ""}),
    ("rule-taint-key", "rule", "spec.taint.key", "Invalid", {"spec/taint/key": "a"}, {"spec/taint/key": "a/b/c"}),
    ("rule-taint-value", "rule", "spec.taint.value", "Invalid", {"spec/taint/value": ""}, {"spec/taint/value": "-"}),
    ("rule-taint-effect", "rule", "spec.taint.effect", "NotSupported",
     {"spec/taint/effect": "None"}, {"spec/taint/effect": "none"}),
    ("pool-request-driver", "pool-request", "spec.driver", "Invalid",
     {"spec/driver": "A" * 253}, {"spec/driver": "A" * 254}),
    ("pool-request-pool", "pool-request", "spec.poolName", "Invalid", {"spec/poolName": "a/b"}, {"spec/poolName": ""}),
    ("pool-request-limit", "pool-request", "spec.limit", "Invalid", {"spec/limit": 1000}, {"spec/limit": 1001}),
    # pods
    ("pod-claim-name", "pod", "spec.resourceClaims[0].name", "Invalid",
     {"spec/resourceClaims/2": {"name": "b", "resourceClaimName": "c"}}, {"spec/resourceClaims/0/name": "A"}),
    ("pod-claim-source-none", "pod", "spec.resourceClaims[0]", "Invalid",
     {}, {"spec/resourceClaims/0/resourceClaimTemplateName": None}),
    ("pod-claim-source-both", "pod", "spec.resourceClaims[0]", "Invalid",
     {}, {"spec/resourceClaims/0/resourceClaimName": "a"}),
    ("pod-claim-source-name", "pod", "spec.resourceClaims[1].resourceClaimName", "Invalid",
     {}, {"spec/resourceClaims/1/resourceClaimName": ""}),
    ("container-claim-name", "pod", "spec.containers[0].resources.claims[0]", "Required",
     {}, {f"{CONTAINER}/resources/claims/0/name": REMOVE}),
    ("container-claim-unknown", "pod", "spec.containers[0].resources.claims[0]", "NotFound",
     {}, {f"{CONTAINER}/resources/claims/0/name": "other"}),
    ("container-claim-duplicate", "pod", "spec.containers[0].resources.claims[1]", "Duplicate",
     {f"{CONTAINER}/resources/claims/1": {"name": "gpu", "request": "s"}},
     {f"{CONTAINER}/resources/claims/1/name": "gpu"}),
    ("container-claim-request", "pod", "spec.containers[0].resources.claims[0].request", "Invalid",
     {f"{CONTAINER}/resources/claims/0/request": ""}, {f"{CONTAINER}/resources/claims/0/request": "a/b"}),
    ("pod-level-claims", "pod", "spec.resources.claims", "Forbidden",
     {"spec/resources": {"limits": {"cpu": "1"}}}, {"spec/resources": {"claims": []}}),
    ("static-pod-claims", "pod", "[]", "Forbidden",
     {"spec/nodeName": "n", "metadata/annotations": {"kubernetes.io/config.source": "x"}},
     {"spec/nodeName": "n", "metadata/annotations": {"kubernetes.io/config.mirror": "x"}}),
    ("ext-resource-limit", "pod", "spec.containers[0].resources.limits", "Required",
     {f"{CONTAINER}/resources/requests": {}}, {f"{CONTAINER}/resources/limits": {}}),
    ("ext-resource-limit", "pod", "spec.containers[0].resources.requests", "Invalid",
     {}, {f"{CONTAINER}/resources/requests": {"example.com/gpu": "2"}}),
    ("ext-resource-integer", "pod", "spec.containers[0].resources.limits[a/b]", "Invalid",
     {f"{CONTAINER}/resources/limits": {"a/b": "2000m"}, f"{CONTAINER}/resources/requests": None},
     {f"{CONTAINER}/resources/limits": {"a/b": "1.5"}, f"{CONTAINER}/resources/requests": None}),
    ("implicit-ext-resource", "pod", f"spec.containers[0].resources.requests[{IMPLICIT}{'g' * 64}]", "Invalid",
     {f"{CONTAINER}/resources/requests": {IMPLICIT + "g": "1.5"}},
     {f"{CONTAINER}/resources/requests": {IMPLICIT + "g" * 64: "1"}}),
    ("container-name", "pod", "spec.containers[0].name", "Required", {}, {f"{CONTAINER}/name": ""}),
    ("container-image", "pod", "spec.containers[0].image", "Invalid", {}, {f"{CONTAINER}/image": " x"}),
    ("containers-missing", "pod", "spec.containers", "Required", {}, {"spec/containers": []}),
    ("restart-policy", "job", "spec.template.spec.restartPolicy", "Required",
     {"spec/template/spec/restartPolicy": "OnFailure"}, {"spec/template/spec/restartPolicy": REMOVE}),
    ("restart-policy", "deployment", "spec.template.spec.restartPolicy", "NotSupported",
     {"spec/template/spec/restartPolicy": ""}, {"spec/template/spec/restartPolicy": "Never"}),
    ("workload-selector", "deployment", "spec.selector", "Required", {}, {"spec/selector": None}),
    ("workload-labels", "stateful-set", "spec.template.metadata.labels", "Invalid",
     {"spec/template/metadata/labels": {"app": "x", "a": "b"}}, {"spec/template/metadata/labels": {"app": "y"}}),
    ("workload-number", "replica-set", "spec.replicas", "Invalid", {"spec/replicas": 0}, {"spec/replicas": -1}),
    ("labels-invalid", "daemon-set", "spec.template.labels", "Invalid",
     {}, {"spec/template/metadata/labels": {"app": "x", "a": "-"}}),
    ("labels-invalid", "job", "spec.template.labels", "Invalid",
     {"metadata/name": "a" * 63}, {"metadata/name": "a" * 64}),
    ("labels-invalid", "job", "metadata.labels", "Invalid",
     {"metadata/labels": {"app": "x"}, "spec/template/metadata": {"labels": {"app": "x"}}},
     {"metadata/labels": None, "spec/template/metadata": {"labels": {"app": "-"}}}),
    ("labels-invalid", "job", "metadata.labels", "Invalid",
     {"metadata/labels": None, "metadata/name": "a" * 63, "spec/template/metadata": {"labels": {}}},
     {"metadata/labels": None, "metadata/name": "a" * 64, "spec/template/metadata": {"labels": {}}}),
    ("labels-invalid", "job", "spec.template.labels", "Invalid",
     {"metadata": {"generateName": "a-"}}, {"metadata": {"generateName": "a/"}}),
    ("owner-invalid", "claim", "metadata.ownerReferences", "Invalid",
     {"metadata/ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a"}]},
     {"metadata/ownerReferences": [{"apiVersion": "/v1", "kind": "Event", "name": "a", "uid": "a"}]}),
    ("owner-invalid", "claim", "metadata.ownerReferences", "Invalid",
     {"metadata/ownerReferences": [
         {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a", "controller": True},
         {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a", "controller": True, "blockOwnerDeletion": None}]},
     {"metadata/ownerReferences": [
         {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "a", "controller": True},
         {"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "a", "controller": True}]}),
    ("template-metadata-forbidden", "template", "spec.metadata.uID", "Forbidden",
     {"spec/metadata": {"uid": ""}}, {"spec/metadata": {"uid": "a"}}),
    ("pod-level-amount", "pod", "spec.resources.requests[cpu]", "Invalid",
     {"spec/resources": {"requests": {"cpu": "2"}}, f"{CONTAINER}/resources/requests": {"cpu": "2"}},
     {"spec/resources": {"requests": {"cpu": "1"}}, f"{CONTAINER}/resources/requests": {"cpu": "2"}}),
    ("pod-level-amount", "pod", "spec.resources.requests[cpu]", "Invalid",
     {"spec/resources": {"requests": {"cpu": "3"}}, **WITH_SIDECAR},
     {"spec/resources": {"requests": {"cpu": "2"}}, **WITH_SIDECAR}),
    ("request-over-limit", "pod", "spec.resources.requests", "Invalid",
     {"spec/resources": {"limits": {"cpu": "2"}}, f"{CONTAINER}/resources/requests": {"cpu": "2"}},
     {"spec/resources": {"limits": {"cpu": "1"}}, f"{CONTAINER}/resources/requests": {"cpu": "2"}}),
    ("pod-level-amount", "deployment", "spec.template.spec.resources.containers[0][cpu].limits", "Invalid",
     {"spec/template/spec/resources": {"limits": {"cpu": "2"}},
      "spec/template/spec/containers/0/resources": {"limits": {"cpu": "2"}}},
     {"spec/template/spec/resources": {"limits": {"cpu": "1"}},
      "spec/template/spec/containers/0/resources": {"limits": {"cpu": "2"}}}),
    ("pod-level-amount", "pod", "spec.resources.limits[hugepages-2Mi]", "Invalid",
     {"spec/resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}, f"{CONTAINER}/resources": {"limits": HUGE}},
     {"spec/resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}, f"{CONTAINER}/resources": {"limits": HUGE}}),
    ("ext-resource-name", "pod", "spec.resources.limits[hugepages-2Mi]", "Invalid",
     {"spec/resources": {"limits": {"cpu": "1"}}, f"{CONTAINER}/resources": {"limits": HUGE}},
     {"spec/resources": {"limits": {"cpu": "1"}},
      f"{CONTAINER}/resources": {"limits": {"hugepages-2Mi": "1", "cpu": "1"}}}),
    ("quota-scope", "quota", "spec.scopes", "Invalid",
     {"spec/scopes": ["BestEffort"], "spec/hard": {"pods": "1"}},
     {"spec/scopes": ["BestEffort"], "spec/hard": {"cpu": "1"}}),
    ("quota-scope", "quota", "spec.scopes", "Invalid", {"spec/scopes": ["Terminating"]}, {"spec/scopes": ["Ended"]}),
    ("quota-scope", "quota", "spec.scopes", "Invalid",
     {"spec/scopes": ["Terminating", "NotBestEffort"]}, {"spec/scopes": ["Terminating", "NotTerminating"]}),
    ("quota-scope", "quota", "spec.scopeSelector.matchExpressions.values", "Required",
     {"spec/scopeSelector": scoped("In", ["high"])}, {"spec/scopeSelector": scoped("In", [])}),
    ("quota-scope", "quota", "spec.scopeSelector.matchExpressions.values", "Invalid",
     {"spec/scopeSelector": scoped("Exists", None)}, {"spec/scopeSelector": scoped("Exists", ["high"])}),
    ("quota-scope", "quota", "spec.scopeSelector.matchExpressions.operator", "Invalid",
     {"spec/scopeSelector": scoped("DoesNotExist", [])}, {"spec/scopeSelector": scoped("Is", [])}),
    ("cron-schedule", "cron-job", "spec.schedule", "Invalid",
     {"spec/schedule": "0 * * * *"}, {"spec/schedule": "0 * * *"}),
    ("quota-key", "quota", "spec.hard[resourceclaims]", "Invalid",
     {"spec/hard": {"count/resourceclaims.resource.k8s.io": "1"}}, {"spec/hard": {"resourceclaims": "1"}}),
    ("quota-amount", "quota", "spec.hard[gpu.deviceclass.resource.k8s.io/devices]", "Invalid",
     {}, {"spec/hard": {"gpu.deviceclass.resource.k8s.io/devices": "1.5"}}),
]
# fmt: on
IDS = [f"{case[0]}-{number}" for number, case in enumerate(CASES)]
NAMESPACES = {"default": {}, "admin": {"resource.kubernetes.io/admin-access": "true"}}


@pytest.mark.parametrize("base", BASES)
def test_the_bases_are_accepted(base: str) -> None:
    verdict = check(BASES[base], namespaces=NAMESPACES)
    assert verdict is not None and verdict.accepted, verdict


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_a_rule(case: tuple[str, str, str, str, Edits, Edits]) -> None:
    rule, base, field, reason, keeps, breaks = case
    kept = check(edited(base, keeps), namespaces=NAMESPACES)
    assert kept is not None and kept.accepted, kept
    broken = check(edited(base, breaks), namespaces=NAMESPACES)
    assert broken is not None and broken.code == 422
    assert (rule, field, reason) in [(one.rule, one.field, one.reason) for one in broken.violations]


GATED = frozenset(("DRAListTypeAttributes", "DRANodeAllocatableResources"))
MAPPINGS = "nodeAllocatableResourceMappings"
# Rule, field inside the device, reason, edits of the device.
# fmt: off
ALPHA: list[tuple[str, str, str, Edits]] = [
    ("attribute-list-empty", ".attributes[model].strings", "Invalid", {"attributes/model": {"strings": []}}),
    ("attribute-string-long", ".attributes[model].strings[1]", "TooLong",
     {"attributes/model": {"strings": ["", "a" * 65]}}),
    ("device-values-too-many", "", "Invalid", {"attributes": {"a": {"ints": [1] * 49}}}),
    ("node-allocatable-key", f".{MAPPINGS}[a/b]", "Invalid", {MAPPINGS: {"a/b": {}}}),
    ("node-allocatable-multiplier", f".{MAPPINGS}[cpu].allocationMultiplier", "Invalid",
     {MAPPINGS: {"cpu": {"allocationMultiplier": "0"}}}),
    ("node-allocatable-capacity-key", f".{MAPPINGS}[cpu].capacityKey", "NotFound",
     {MAPPINGS: {"cpu": {"capacityKey": "x"}}}),
]
# fmt: on


@pytest.mark.parametrize(("rule", "field", "reason", "edits"), ALPHA)
def test_a_rule_of_an_alpha_feature(rule: str, field: str, reason: str, edits: Edits) -> None:
    on = default_features(Release(1, 36)) | GATED
    broken = check(edited("slice", {f"{DEVICE}/{path}": value for path, value in edits.items()}), features=on)
    assert broken is not None and broken.code == 422
    found = [(one.rule, one.field, one.reason) for one in broken.violations]
    assert found == [(rule, f"spec.devices[0]{field}", reason)]


def test_lists_are_dropped_without_their_feature() -> None:
    manifest = edited("slice", {f"{DEVICE}/attributes/model": {"strings": ["a"]}})
    without, on = check(manifest), check(manifest, features=default_features(Release(1, 36)) | GATED)
    assert without is not None and [one.rule for one in without.violations] == ["attribute-one-value"]
    assert on is not None and on.accepted


def test_a_step_of_zero_crashes_the_handler_up_to_136() -> None:
    manifest = edited("slice", {f"{RANGE}/step": "0"})
    crashed, fixed = check(manifest), check(manifest, release=Release(1, 37))
    assert crashed is not None and fixed is not None
    assert (crashed.accepted, crashed.code) == (False, 500)
    assert (fixed.code, [one.reason for one in fixed.violations]) == (422, ["Invalid"])


@pytest.mark.parametrize(
    ("edits", "minor", "accepted"),
    [
        ({f"{DEVICE}/taints": [{"key": "a", "effect": "NoSchedule"}] * 5}, 34, False),
        ({f"{DEVICE}/taints": [{"key": "a", "effect": "NoSchedule"}] * 5}, 35, True),
        ({f"{DEVICE}/taints/0/effect": "None"}, 34, False),
    ],
)
def test_limits_of_older_releases(edits: Edits, minor: int, accepted: bool) -> None:
    release = Release(1, minor)
    on = default_features(release) | {
        "DRADeviceTaints",
        "DRAConsumableCapacity",
        "DRAPartitionableDevices",
        "DRADeviceBindingConditions",
    }
    verdict = check(edited("slice", edits), release=release, features=on)
    assert verdict is not None and verdict.accepted is accepted, verdict
