"""What ``explain`` prints without a cluster: what a message means, and the page of a cause."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kubectl_dra.cli.explain import ExplainFlags, ExplainOutput
from kubectl_dra.cli.usage_errors import unknown_code
from kubectl_dra.cluster.contents import STDIN, contents
from kubectl_dra.data.messages import ANY, KUBELET, LAYERS, Understood, understood
from kubectl_dra.errors import UsageError
from kubectl_dra.exit_codes import EXIT_UNDETERMINED
from kubectl_dra.explain.causes.registry import all_kinds
from kubectl_dra.report.color import Painter, write_page
from kubectl_dra.report.json_output import SCHEMA_VERSION, write
from kubectl_dra.text import page_of_causes


def print_message(flags: ExplainFlags) -> int:
    """Print what a message means; of standard input every line that is known, once. Returns the exit code.

    Raises UsageError: what does not go with it; InputError: standard input cannot be read.
    """
    if flags.target or flags.manifests or flags.snapshots or flags.all_claims or flags.all_namespaces:
        raise UsageError("--message explains a text; leave the pod, claim, manifest and snapshot out")
    if flags.output is ExplainOutput.html:
        raise UsageError("--message prints text, json or yaml, not html")
    piped = flags.message == STDIN
    # Bytes of an argument that are no UTF-8 are halves of surrogates, which nothing can search.
    data = contents(STDIN) if piped else flags.message.encode("utf-8", "replace")
    text = data.decode("utf-8", "replace")
    lines = text.splitlines() if piped else [text]
    meanings = known_in(lines)
    if flags.output is not ExplainOutput.text:
        result = {
            "schemaVersion": SCHEMA_VERSION,
            "kind": "MessageList",
            "items": [_json(meaning) for meaning in meanings],
        }
        code = 0 if meanings else EXIT_UNDETERMINED
        write(result, flags.output.value, sys.stdout, code)
        return code
    out = Painter(color=flags.color.value)
    if not meanings:
        out.sentence(
            "Nothing in this text is a message that is known here." if piped else "This message is not known here."
        )
        out.sentence("If a pod shows it, kubectl dra explain pod/NAME says what the cluster tells about it.")
        return EXIT_UNDETERMINED
    for number, meaning in enumerate(meanings):
        if number:
            out.write("")
        _write(out, meaning)
    return 0


def known_in(lines: Iterable[str]) -> list[Understood]:
    """What the lines mean that are known, each entry once."""
    meanings: dict[str, Understood] = {}
    for line in lines:
        meaning = understood(line) if line.strip() else None
        if meaning is not None:
            meanings.setdefault(meaning.entry.pattern, meaning)
    # What a driver says in its own words tells more than that it failed.
    exact = [meaning for meaning in meanings.values() if not meaning.entry.generic]
    return exact or list(meanings.values())


def _who(meaning: Understood) -> str:
    said = meaning.entry.says
    if said == (KUBELET,):
        return "the kubelet"
    if said[0] in LAYERS:
        return " or ".join(said)
    return "any driver" if said == (ANY,) else f"driver {' or '.join(said)}"


def _write(out: Painter, meaning: Understood) -> None:
    known = meaning.entry
    out.sentence(meaning.means)
    out.write("")
    out.sentence(f"  Said by: {_who(meaning)}")
    out.sentence(f"  What to do: {meaning.do}")
    if meaning.gate:
        out.sentence(f"  Feature gate: {meaning.gate}")
    if known.normal:
        out.sentence("  It is normal for a moment.")
    if known.since or known.until or known.fixed:
        parts = ((f"since {known.since}", known.since), (f"up to {known.until}", known.until))
        parts_told = [text for text, given in (*parts, (f"fixed in {known.fixed}", known.fixed)) if given]
        out.sentence(f"  Releases: {', '.join(parts_told)}")
    if meaning.url:
        out.sentence(f"  Known as: {meaning.url}")


def _json(meaning: Understood) -> dict[str, object]:
    known = meaning.entry
    out: dict[str, object] = {"saidBy": list(known.says), "means": meaning.means, "fix": {"text": meaning.do}}
    details = (("gate", meaning.gate), ("since", known.since), ("until", known.until), ("fixedIn", known.fixed))
    out |= {name: value for name, value in (*details, ("issue", meaning.url)) if value}
    return out | ({"transient": True} if known.normal else {})


# ``explain --explain CODE``: the page of a cause.


def print_page(flags: ExplainFlags) -> int:
    """Print the page; return the exit code. Raises UsageError: no such cause, or what does not go with it."""
    from kubectl_dra.report.explain_json import cause_json

    if flags.target or flags.manifests or flags.all_claims or flags.all_namespaces:
        raise UsageError("--explain prints a page about one cause; leave the pod, claim or manifest out")
    if flags.output is ExplainOutput.html:
        raise UsageError("--explain prints text, json or yaml, not html")
    known = {kind.code: kind for kind in all_kinds()}
    kind = known.get(flags.cause.lower())
    if kind is None:
        raise unknown_code("cause", flags.cause, known, f"{page_of_causes()} lists them")
    if flags.output is ExplainOutput.text:
        write_page(kind.page.text, flags.color)
    else:
        write(cause_json(kind), flags.output.value, sys.stdout, 0)
    return 0
