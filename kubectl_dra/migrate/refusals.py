"""Why a whole file or object is left alone."""

from __future__ import annotations

from typing import Final

from kubectl_dra.migrate.model import ChangePage

TEMPLATE: Final = "MIG901"
UNREADABLE: Final = "MIG902"
NOT_AN_OBJECT: Final = "MIG903"
NO_EDIT: Final = "MIG904"
NO_PLACE: Final = "MIG905"
NAME_TAKEN: Final = "MIG906"
REPEATED: Final = "MIG907"
PATCH: Final = "MIG908"
BUILD: Final = "MIG909"

WAY_OUT_BUILD: Final = (
    "change what is in the way in the overlay by hand, or give all that it reads to one run of migrate; compare what "
    "kubectl kustomize builds before and after"
)

WAY_OUT_PATCH: Final = (
    "migrate what it patches, look at what kubectl kustomize DIR | kubectl dra migrate - --diff makes of both "
    "together, then write the patch for that: of the count in the ResourceClaimTemplate, not of the limit"
)

ABOUT: Final = (
    ChangePage(
        TEMPLATE,
        "template",
        "refusal",
        "The file is a template",
        "A template has no objects until it is filled in, and nobody knows before what a value will be. Change the "
        "templates by hand, or migrate what helm, envsubst or another tool makes of them to see what should come out.",
        "resources:\n  limits:\n    nvidia.com/gpu: {{ .Values.gpus }}\n",
        "helm template CHART | kubectl dra migrate - -o yaml\n",
    ),
    ChangePage(
        UNREADABLE,
        "unreadable",
        "refusal",
        "The file cannot be read",
        "It asks for devices of a device plugin or for an old API version, but it is not valid YAML or JSON. "
        "kubectl dra lint says where; then run migrate again. A changed file is read again as a whole, so one "
        "unreadable document holds up the others: kubectl would stop at it, too. A file or directory that the "
        "system does not let migrate read is also refused, because nobody knows what it asks for.",
    ),
    ChangePage(
        NOT_AN_OBJECT,
        "not-an-object",
        "refusal",
        "The document is not a Kubernetes object",
        "Helm values and other tools' files name resources of device plugins too. Only the tool knows what it "
        "makes of them, so they are not touched. Migrate what it renders, and change its input so that the same "
        "comes out.",
        "resources:\n  limits:\n    nvidia.com/gpu: 1\n",
        "resources:\n  claims:\n  - name: gpu\n",
    ),
    ChangePage(
        NO_EDIT,
        "no-edit",
        "refusal",
        "The text cannot be changed safely",
        "Only bytes that have to change are changed, and the result is read again: it must be the intended "
        "object, with all its comments. If that is impossible, for instance because an anchor is shared with "
        "something that must stay as it is, the object is left alone.",
        "containers:\n- name: a\n  resources: &gpu\n    limits: {nvidia.com/gpu: 1}\n"
        "# also used where nothing changes\nx-default: *gpu\n",
        "containers:\n- name: a\n  resources:\n    limits: {nvidia.com/gpu: 1}\n",
    ),
    ChangePage(
        NO_PLACE,
        "no-place",
        "refusal",
        "There is no place for the new object",
        "A JSON file that is one object cannot hold a second one, and JSON stays JSON. Name another file for new "
        "objects with --claims-file, or make the file a List.",
        '{"apiVersion": "v1", "kind": "Pod"}\n',
        '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod"}]}\n',
    ),
    ChangePage(
        NAME_TAKEN,
        "name-taken",
        "refusal",
        "Another object has the name",
        "Two workloads want an object of the same kind, namespace and name in one place, but not the same one; or "
        "an object of that name already exists. There is no way to tell which one is meant. Rename a workload, or "
        "leave --claims-file out: then each object goes into the file of its workload.",
    ),
    ChangePage(
        REPEATED,
        "repeated-key",
        "refusal",
        "A duplicate key",
        "kubectl silently takes the last of two equal keys, kustomize refuses the file, and people may have meant the "
        "first. Changing one of them would hide the other. Keep only one, then migrate. Two that say the same "
        "are not in the way (lint reports them as DRA902).",
        "resources:\n  requests: {cpu: 1}\nresources:\n  limits: {nvidia.com/gpu: 1}\n",
        "resources:\n  requests: {cpu: 1}\n  limits: {nvidia.com/gpu: 1}\n",
    ),
    ChangePage(
        PATCH,
        "patch",
        "refusal",
        "A patch names the resource",
        "A JSON patch that removes a resource or sets all of them at once, one in a file that no kustomization here "
        "names, or a patch of Flux is about an object elsewhere. Unchanged, it would bring the resource back beside "
        "the claim, or fail because there is no limit left to replace. The count of devices is now in the "
        "ResourceClaimTemplate: patch that.",
        "- op: replace\n  path: /spec/template/spec/containers/0/resources/limits\n  value: {nvidia.com/gpu: 4}\n",
        "# target: {kind: ResourceClaimTemplate, name: train-gpu}\n"
        "- op: replace\n  path: /spec/spec/devices/requests/0/exactly/count\n  value: 4\n",
    ),
    ChangePage(
        BUILD,
        "kustomization",
        "refusal",
        "A kustomization would build something else",
        "Every kustomization that is built from a changed file, anywhere in the repository, is built before and "
        "after. Afterwards it must build what migrate makes of the earlier build. If anything else would differ, "
        "if it cannot be built, or if it takes a base from elsewhere, none of the files that it shares with "
        "others is changed.",
        "patches:\n- target: {kind: Deployment}\n  patch: |-\n    - op: replace\n"
        "      path: /spec/template/spec/containers/0/resources/limits\n      value: {nvidia.com/gpu: 4}\n",
        "patches:\n- target: {kind: ResourceClaimTemplate}\n  patch: |-\n    - op: add\n"
        "      path: /spec/spec/devices/requests/0/exactly/count\n      value: 4\n",
    ),
)
