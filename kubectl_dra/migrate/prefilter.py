"""Tells from the text alone whether a file may have something to migrate; most files do not."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from kubectl_dra.data.files import vendor_files

if TYPE_CHECKING:
    from kubectl_dra.migrate.vendors.catalogue import VendorCatalogue

# Anything of DRA, any name of an extended resource, and what people set for accelerators beside it.
_WORDS: Final = re.compile(
    r"resource\.k8s\.io|resourceClaims|gpu|GPU|nvidia|NVIDIA|neuron|gaudi|tpu|TPU|sriov"
    r"|karpenter|ComputeClass|cluster-autoscaler"
)
_NAMES: Final = re.compile(
    r"(?<![\w./@:-])(?:requests\.|limits\.)?"
    r"(?!(?:[-a-z0-9]+\.)*(?:kubernetes|k8s)\.io/)((?:[-a-z0-9]+\.)*[-a-z0-9]+/[A-Za-z0-9][-\w.]*)(?![\w/@]|:\S)"
)
# An amount of anything: a name as a key, whose value does not begin with a letter as a label's or annotation's does;
# or the name that a queue or operator gives a resource.
_AMOUNTS: Final = re.compile(
    _NAMES.pattern + r"[\"']?\s*:\s*[\"']?(?![\"'])[^\sA-Za-z]|\bname[\"']?\s*:\s*[\"']?" + _NAMES.pattern
)
# As a JSON pointer writes it: the slash of the name is ~1.
_POINTED: Final = re.compile(r"(?<=/)((?:[-a-z0-9]+\.)+[-a-z0-9]+)~1([A-Za-z0-9][-\w.]*)")
_OPERATION: Final = re.compile(r"^\s*(?:\[\s*\{|-\s+\{?)\s*[\"']?op[\"']?\s*:", re.MULTILINE)
_VERSION: Final = re.compile(r"/v\d+((alpha|beta)\d+)?\Z")
_COMMENT: Final = re.compile(r"(?:^|\s)#(?!\{)|\{\{-?\s*/\*")
_KEY: Final = re.compile(r"(?:.*[\s{,\[-])?[\"']?key[\"']?:\s*[\"']?")
# A label of a query of metrics: {resource="nvidia.com/gpu"}.
_MATCHED: Final = re.compile(r"[{,]\s*\w+\s*=~?\s*\\*[\"']\Z")
# A value that is no amount and no placeholder of one: a label such as nvidia.com/gpu.present has it.
_LABEL: Final = re.compile(r"[\"']?\s*:\s+[\"']?[A-Za-z]")
# NVIDIA Dynamo counts devices by a key of its own (claimless_kinds.py).
_DYNAMO: Final = re.compile(r"^\s*kind:\s*[\"']?Dynamo", re.MULTILINE)
_GPU_COUNT: Final = re.compile(r"^\s+(gpu):\s*[\"']?(?:[1-9]|\{\{)", re.MULTILINE)
_API: Final = re.compile(r"resource\.k8s\.io/v1(?:alpha\d+|beta\d+)")


def relevant(text: str) -> bool:
    """Whether the text may have something to migrate. Errs on the side of True."""
    if "/" not in text and "~1" not in text:
        return _WORDS.search(text) is not None
    return any(found.search(text) for found in (_WORDS, _AMOUNTS, _known_domains()))


@cache
def _known_domains() -> re.Pattern[str]:
    """The domains of resources that vendors' files of this package know, as they begin a name."""
    domains = {domain for file in vendor_files().values() for domain in file.domains if domain != "*"}
    return re.compile(rf"(?<![\w.-])(?:{'|'.join(re.escape(domain) for domain in sorted(domains))})(?:/|~1)")


def evidence(text: str, catalogue: VendorCatalogue, version: str) -> list[tuple[int, str]]:
    """Which resources of the catalogue or other API versions an unreadable text names, and where."""
    known: dict[str, bool] = {}
    out = [
        (found.start(), found[0])
        for found in _API.finditer(text)
        if not (found[0].endswith(f"/{version}") or _is_mention(text, found.start()))
    ]
    for found in _NAMES.finditer(text):
        name = found[1]
        if _is_mention(text, found.start()) or _LABEL.match(text, found.end()):
            continue
        if name not in known:
            known[name] = _VERSION.search(name) is None and catalogue.moves(name)
        if known[name]:
            out.append((found.start(), name))
    if _DYNAMO.search(text):
        out += [(found.start(1), found[1]) for found in _GPU_COUNT.finditer(text)]
    return sorted((*out, *pointed(text, catalogue)))


def asked_in(text: str, catalogue: VendorCatalogue) -> list[tuple[int, str]]:
    """The resources of the catalogue that a text asks for, and where: without labels, which have values of letters."""
    return [(at, name) for at, name in evidence(text, catalogue, "") if catalogue.moves(name)]


def _is_mention(text: str, at: int) -> bool:
    """Whether the name is in a comment the key of a toleration or taint, or of a query: these request nothing."""
    lead = text[text.rfind("\n", 0, at) + 1 : at]
    return bool(_COMMENT.search(lead) or _KEY.fullmatch(lead) or _MATCHED.search(lead))


def pointed(text: str, catalogue: VendorCatalogue) -> list[tuple[int, str]]:
    """Which resources of the catalogue the JSON patches (RFC 6902) of a text name, and where."""
    found = [(one.start(), f"{one[1]}/{one[2]}") for one in _POINTED.finditer(text)] if "~1" in text else []
    return [(at, name) for at, name in found if catalogue.moves(name)]


def is_json_patch(text: str) -> bool:
    """Whether a list has operations of a JSON patch (RFC 6902) in it."""
    return _OPERATION.search(text) is not None


def named_in(text: str, catalogue: VendorCatalogue) -> list[str]:
    """The resources of the catalogue that a text names, plainly or in JSON pointer form."""
    names = [
        found[1]
        for found in _NAMES.finditer(text)
        if not _VERSION.search(found[1]) and not _is_mention(text, found.start())
    ]
    names = [name for name in dict.fromkeys(names) if catalogue.moves(name)]
    return list(dict.fromkeys((*names, *(name for _, name in pointed(text, catalogue)))))
