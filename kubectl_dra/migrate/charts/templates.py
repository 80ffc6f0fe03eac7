"""Texts of templates that pass claims on from values, or make claims of the devices that they asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubectl_dra.manifests.style import Style
from kubectl_dra.migrate.new_objects import documents_of

CLAIMS_FILE: Final = "resourceclaimtemplates.yaml"
CLAIM_VALUES: Final = "resourceClaimTemplates"
_ACTION: Final = re.compile(r"\{\{-?\s*(?P<word>/\*|\w+)?.*?-?\}\}", re.DOTALL)
_OPENING: Final = ("if", "range", "with", "define", "block")
_RESOURCES: Final = re.compile(r"^(?P<indent>[ ]*(?:-[ ]+)?)resources:", re.MULTILINE)
_EXPRESSION: Final = re.compile(r"(?P<of>[$.][\w.]*\.|[$.])(?P<field>\w*[rR]esources)\b")
_CONTAINERS: Final = re.compile(r"^(?P<indent>[ ]*)containers:", re.MULTILINE)
_KEY: Final = re.compile(r"^(?P<indent>[ ]*)[\w-]+:[ ]*$", re.MULTILINE)
_FORMAT: Final = re.compile(r"\s*\|\s*(?:n?indent\s+\d+|trim)\s*$")
_DOCUMENT: Final = re.compile(r"^---[ \t]*$", re.MULTILINE)
_API: Final = re.compile(r"^apiVersion:", re.MULTILINE)
_NAME: Final = re.compile(r"^metadata:.*?^  name:[ ]*(?P<name>[^\n]+)$", re.MULTILINE | re.DOTALL)
_NAMESPACE: Final = re.compile(r"^  namespace:[ ]*[^\n]+$", re.MULTILINE)


def claims_template(namespaced: bool) -> str:
    """The template that makes the claims which values list by name, as the chart's workloads name their namespace."""
    namespace = "  namespace: {{ $.Release.Namespace }}\n" if namespaced else ""
    return f"""\
{{{{- range $name, $spec := .Values.{CLAIM_VALUES} }}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: {{{{ tpl $name $ }}}}
{namespace}spec:
  {{{{- toYaml $spec | nindent 2 }}}}
{{{{- end }}}}
"""


class PodChange(NamedTuple):
    """What a pod lacks: ``fields`` of its spec by name, the claims of a container, the claim and its object's name.

    ``resource`` is the device plugin's name for what the claim is for, ``suffix`` what its name has behind the
    workload's.
    """

    fields: Mapping[str, Any]
    claims: Sequence[Mapping[str, Any]]
    resource: str
    spec: Mapping[str, Any]
    suffix: str


class _Block(NamedTuple):
    """An open block of a template: where it begins, and its actions so far, such as if and else if."""

    start: int
    actions: tuple[str, ...]


def passing(text: str, field: str) -> Iterator[str]:
    """The template with a field of the pod's spec taken from values beside each place that has its resources."""
    for resources in _RESOURCES.finditer(text):
        above = text.rfind("\n", 0, max(0, text.rfind("\n", 0, resources.start()))) + 1
        end = _line_end(text, _line_end(text, resources.end()) + 1)
        of = next((found["of"] for found in _EXPRESSION.finditer(text, above, end)), None)
        pod = _containers(text, resources)
        if of is None or pod is None:
            continue
        indent = pod["indent"]
        for value in ("tpl (toYaml .) $", "toYaml ."):
            new = (
                f"{indent}{{{{- with {of}{field} }}}}\n{indent}{field}:\n"
                f"{indent}  {{{{- {value} | nindent {len(indent) + 2} }}}}\n{indent}{{{{- end }}}}\n"
            )
            yield text[: pod.start()] + new + text[pod.start() :]


def claiming(text: str, change: PodChange) -> Iterator[str]:
    """The template with claims where it wrote devices: on lines of their own, or as part of an expression."""
    for resources in _RESOURCES.finditer(text):
        for made in (_written_out, _worked_out):
            new = made(text, resources, change)
            if new is not None:
                yield new


def _written_out(text: str, resources: re.Match[str], change: PodChange) -> str | None:
    """The template without the lines that ask for devices, and with as many in a claim."""
    pod, begin = _containers(text, resources), _document_start(text, resources.start())
    if pod is None or begin is None:
        return None
    indent = len(resources["indent"])
    end = _line_end(text, resources.start()) + 1
    while end < len(text) and _deeper(text[end : _line_end(text, end)], indent):
        end = _line_end(text, end) + 1
    inside = text[resources.start() : end]
    names = (re.escape(change.resource), r"\{\{[^}\n]+\}\}")
    lines = next((found for name in names if (found := _device_lines(inside, name))), [])
    if not lines:
        return None
    place = resources.start() + lines[-1].start()
    amount = re.sub(r"\s*\|\s*quote\b", "", lines[-1]["amount"].strip().strip("\"'"))
    for line in reversed(lines):
        inside = inside[: line.start()] + inside[line.end() :]
    key_end = inside.index("\n") + 1
    guard = _guard(text, resources.start(), place)
    claims = guard.around(_indented({"claims": list(change.claims)}, indent + 2))
    inside = inside[:key_end] + claims + _without_empty(inside[key_end:])
    pod_fields = _guard(text, pod.start(), place).around(_pod_fields(text, begin, change, len(pod["indent"])))
    document = _guard(text, begin, place).around(_claim(text, begin, change, amount))
    out = text[: pod.start()] + pod_fields + text[pod.start() : resources.start()] + inside
    return _with_document(out + text[end:], begin, document)


def _worked_out(text: str, resources: re.Match[str], change: PodChange) -> str | None:
    """The template with claims in place of the devices that an expression for the resources has."""
    pod, begin = _containers(text, resources), _document_start(text, resources.start())
    action = _ACTION.match(text, resources.end() + len(text[resources.end() :]) - len(text[resources.end() :].lstrip()))
    if pod is None or begin is None or action is None or action["word"] in (*_OPENING, "/*"):
        return None
    expression = action[0].strip("{}").strip("-").strip()
    while _FORMAT.search(expression):
        expression = _FORMAT.sub("", expression)
    number = text.count("$resources") and f"{text.count(':= omit (get $resources') + 1}"
    name, devices = f"$resources{number or ''}", f"$devices{number or ''}"
    read = expression if expression.startswith("toYaml ") or " " in expression else f"({expression})"
    before = f"""\
{{{{- {name} := {read} | fromYaml }}}}
{{{{- {devices} := dig "limits" "{change.resource}" (dig "requests" "{change.resource}" 0 {name}) {name} }}}}
{{{{- range $list := list "limits" "requests" }}}}
{{{{- $left := omit (get {name} $list | default dict) "{change.resource}" }}}}
{{{{- $_ := unset {name} $list }}}}
{{{{- if $left }}}}{{{{ $_ := set {name} $list $left }}}}{{{{ end }}}}
{{{{- end }}}}
{{{{- if {devices} }}}}
{{{{- $_ := set {name} "claims" (list {" ".join(_dict(claim) for claim in change.claims)}) }}}}
{{{{- end }}}}
"""
    guard = _Guard((f"{{{{- if {devices} }}}}",), 1)
    pod_fields = guard.around(_pod_fields(text, begin, change, len(pod["indent"])))
    document = guard.around(_claim(text, begin, change, f"{{{{ {devices} }}}}"))
    written = f"{{{{- toYaml {name} | nindent {len(resources['indent']) + 2} }}}}"
    out = text[:begin] + before + text[begin : pod.start()] + pod_fields
    out += text[pod.start() : action.start()] + written + text[action.end() :]
    return _with_document(out, begin + len(before), document)


class _Guard(NamedTuple):
    """The actions that open blocks around a place, and how many end them."""

    actions: tuple[str, ...]
    blocks: int

    def around(self, text: str) -> str:
        return "".join(f"{action}\n" for action in self.actions) + text + "{{- end }}\n" * self.blocks


def _guard(text: str, outer: int, inner: int) -> _Guard:
    """The blocks around a place that are not around another one above it."""
    around = {block.start for block in _blocks(text, outer)}
    blocks = [block for block in _blocks(text, inner) if block.start not in around]
    return _Guard(tuple(action for block in blocks for action in block.actions), len(blocks))


def _blocks(text: str, end: int) -> list[_Block]:
    """The blocks that are open at a place, the outermost first."""
    out: list[_Block] = []
    for action in _ACTION.finditer(text, 0, end):
        if action["word"] in _OPENING:
            out.append(_Block(action.start(), (action[0],)))
        elif action["word"] == "else" and out:
            out[-1] = out[-1]._replace(actions=(*out[-1].actions, action[0]))
        elif action["word"] == "end" and out:
            out.pop()
    return out


def _device_lines(text: str, name: str) -> list[re.Match[str]]:
    return list(re.finditer(rf"^[ ]*[\"']?{name}[\"']?:[ ]*(?P<amount>[^\n]+)\n", text, re.MULTILINE))


def _without_empty(text: str) -> str:
    """The lines without blocks and lists that have lost all their lines."""
    block = re.compile(
        r"^[ ]*\{\{-?\s*(?:if|with|range)\b[^}\n]*\}\}\n(?:[ ]*\{\{-?\s*else\b[^}\n]*\}\}\n)*"
        r"[ ]*\{\{-?\s*end\s*-?\}\}\n?",
        re.MULTILINE,
    )
    lists = re.compile(r"^(?P<indent>[ ]*)(?:limits|requests):[ ]*\n(?!(?P=indent)[ ]|[ ]*\{\{)", re.MULTILINE)
    while (new := lists.sub("", block.sub("", text))) != text:
        text = new
    return text


def _deeper(line: str, indent: int) -> bool:
    """Whether a line belongs to a key with this indentation. Actions stand anywhere."""
    stripped = line.lstrip()
    return not stripped or stripped.startswith("{{") or len(line) - len(stripped) > indent


def _containers(text: str, resources: re.Match[str]) -> re.Match[str] | None:
    """The key of a pod's spec below which some resources are: its containers, or one that a controller fills in."""
    begin = _document_start(text, resources.start()) or 0
    found = list(_CONTAINERS.finditer(text, begin, resources.start()))
    keys = _KEY.finditer(text, begin, resources.start())
    return next(reversed(found or [key for key in keys if len(key["indent"]) < len(resources["indent"])]), None)


def _document_start(text: str, place: int) -> int | None:
    return next((found.start() for found in reversed(list(_API.finditer(text, 0, place)))), None)


def _with_document(text: str, begin: int, document: str) -> str:
    """The template with a document behind the one that begins at a place, in the same blocks."""
    depth = len(_blocks(text, begin))
    ends = [found.start() for found in _DOCUMENT.finditer(text, begin) if len(_blocks(text, found.start())) <= depth]
    ends += [found.start() for found in _ACTION.finditer(text, begin) if len(_blocks(text, found.end())) < depth]
    end = min(ends, default=len(text))
    head = text[:end] if text[:end].endswith("\n") or not text[:end] else text[:end] + "\n"
    return head + document + text[end:]


def _pod_fields(text: str, begin: int, change: PodChange, indent: int) -> str:
    """The fields that a pod lacks, without those that its template has from elsewhere."""
    name = f"{_name(text, begin)}{change.suffix}"
    claims = [{**claim, "resourceClaimTemplateName": "NAME"} for claim in change.fields.get("resourceClaims", ())]
    fields = {
        field: value
        for field, value in change.fields.items()
        if field != "resourceClaims" and not re.search(rf"^[ ]*{field}:", text, re.MULTILINE)
    }
    return _indented({"resourceClaims": claims, **fields}, indent).replace("NAME", name)


def _claim(text: str, begin: int, change: PodChange, amount: str) -> str:
    """A document of a template: the claim, with as many devices as an expression says."""
    namespace = _NAMESPACE.search(text, begin, text.find("\nspec:", begin) + 1)
    devices = change.spec["spec"]["devices"]
    (request,) = devices["requests"]
    counted = {**request, "exactly": {**request["exactly"], "count": "AMOUNT"}}
    raw = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "NAME", **({"namespace": "SPACE"} if namespace else {})},
        "spec": {"spec": {"devices": {**devices, "requests": [counted]}}},
    }
    out = "---\n" + documents_of([raw], Style())
    out = out.replace("NAME", f"{_name(text, begin)}{change.suffix}").replace("AMOUNT", amount)
    return out.replace("  namespace: SPACE", namespace[0]) if namespace else out


def _name(text: str, begin: int) -> str:
    """A document's name as its template writes it."""
    found = _NAME.search(text, begin)
    return found["name"].strip().strip("\"'") if found else "{{ .Release.Name }}"


def _dict(claim: Mapping[str, Any]) -> str:
    return "(dict " + " ".join(f'"{key}" "{value}"' for key, value in claim.items()) + ")"


def _indented(value: Mapping[str, Any], indent: int) -> str:
    return "".join(f"{' ' * indent}{line}\n" for line in documents_of([value], Style()).splitlines())


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) - 1 if end < 0 else end
