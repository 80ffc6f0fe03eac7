"""``explain --message TEXT``: what a message of the kubelet or of a driver means, without any cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cluster.contents import STDIN, contents
from kubectl_dra.data.messages import ANY, KUBELET, LAYERS, Understood, understood
from kubectl_dra.errors import UsageError
from kubectl_dra.report.json_shapes import SCHEMA_VERSION
from kubectl_dra.report.paint import Painter
from kubectl_dra.report.table import write

EXIT_UNKNOWN = 3


def print_message(asked: ExplainFlags) -> int:
    """Print what a message means; of standard input every line that is known, once. Returns the exit code.

    Raises:
        UsageError: what does not go with it.
        InputError: standard input cannot be read.
    """
    if asked.target or asked.manifests or asked.snapshots or asked.all_claims or asked.all_namespaces:
        raise UsageError("--message explains a text; leave the pod, claim, manifest and snapshot out")
    if asked.output is ExplainOutput.html:
        raise UsageError("--message prints text, json or yaml, not html")
    piped = asked.message == STDIN
    # Bytes of an argument that are no UTF-8 are halves of surrogates, which nothing can search.
    data = contents(STDIN) if piped else asked.message.encode("utf-8", "replace")
    text = data.decode("utf-8", "replace")
    lines = text.splitlines() if piped else [text]
    found = known_in(lines)
    if asked.output is not ExplainOutput.text:
        result = {"schemaVersion": SCHEMA_VERSION, "kind": "MessageList", "items": [_json(one) for one in found]}
        write(result, asked.output.value, sys.stdout)
        return 0 if found else EXIT_UNKNOWN
    out = Painter(color=asked.color.value)
    if not found:
        out.sentence(
            "Nothing in this text is a message that is known here." if piped else "This message is not known here."
        )
        out.sentence("If a pod shows it, kubectl dra explain pod/NAME says what the cluster tells about it.")
        return EXIT_UNKNOWN
    for number, one in enumerate(found):
        if number:
            out.write("")
        _write(out, one)
    return 0


def known_in(lines: Iterable[str]) -> list[Understood]:
    """What the lines mean that are known, each entry once."""
    found: dict[str, Understood] = {}
    for line in lines:
        one = understood(line) if line.strip() else None
        if one is not None:
            found.setdefault(one.entry.pattern, one)
    # What a driver says in its own words tells more than that it failed.
    exact = [one for one in found.values() if not one.entry.generic]
    return exact or list(found.values())


def _who(one: Understood) -> str:
    said = one.entry.says
    if said == (KUBELET,):
        return "the kubelet"
    if said[0] in LAYERS:
        return " or ".join(said)
    return "any driver" if said == (ANY,) else f"driver {' or '.join(said)}"


def _write(out: Painter, one: Understood) -> None:
    entry = one.entry
    out.sentence(one.means)
    out.write("")
    out.sentence(f"  Said by: {_who(one)}")
    out.sentence(f"  What to do: {one.do}")
    if one.gate:
        out.sentence(f"  Feature gate: {one.gate}")
    if entry.normal:
        out.sentence("  It is normal for a moment.")
    if entry.since or entry.until or entry.fixed:
        parts = ((f"since {entry.since}", entry.since), (f"up to {entry.until}", entry.until))
        told = [text for text, given in (*parts, (f"fixed in {entry.fixed}", entry.fixed)) if given]
        out.sentence(f"  Releases: {', '.join(told)}")
    if one.url:
        out.sentence(f"  Known as: {one.url}")


def _json(one: Understood) -> dict[str, object]:
    entry = one.entry
    out: dict[str, object] = {"saidBy": list(entry.says), "means": one.means, "fix": {"text": one.do}}
    told = (("gate", one.gate), ("since", entry.since), ("until", entry.until), ("fixedIn", entry.fixed))
    out |= {name: value for name, value in (*told, ("issue", one.url)) if value}
    return out | ({"transient": True} if entry.normal else {})
