"""The sentences of ``fit`` about new nodes: with which an answer is, and how many it takes."""

from __future__ import annotations

from collections.abc import Mapping

from kubectl_dra.command import CommandLine
from kubectl_dra.explain.question.node_around import AskedLabel
from kubectl_dra.explain.question.node_in_words import LABEL
from kubectl_dra.fit.result import NodesNeeded
from kubectl_dra.report.explain_commands import Invocation
from kubectl_dra.report.phrases import written
from kubectl_dra.text import amount, join, some


def supposing(given: Mapping[str, int]) -> str:
    """The new nodes with which an answer is, each with their number."""
    nodes = (f"{amount(number, 'new node')} ({typed})" for typed, number in given.items())
    return f"With {join(nodes)}"


def needed(needed: NodesNeeded) -> str:
    """Number of new nodes that it takes, in one sentence."""
    which, number = f"({needed.nodes})", amount(needed.number, "new node")
    if needed.domains:
        return f"How many new nodes {which} it takes depends on {join(list(map(_domain, needed.domains)))}"
    fewer, fits = "", "fit and start" if needed.idle else "fit"
    if needed.fewer is not None:
        count, placed = needed.fewer
        does = f"{placed or 'none'} of {amount(needed.pods, 'pod')}" if needed.pods > 1 else "the pod does not"
        fewer = f"; with {count or 'none'}, {does} {fits}"
    if needed.enough:
        provided = f", if {written(needed.provided)}" if needed.provided else ""
        takes = f"It takes {number} {which}{provided}{fewer}" if needed.number else f"No new node {which} is needed"
        return takes + _after_others(needed)
    if not needed.number:
        return f"New nodes {which} do not help: {_tried(needed)}"
    fit = f"{needed.placed:,} of {amount(needed.pods, 'pod')}"
    if needed.ended:
        return f"With {number} {which} {fit} {fits}; each more helps, but no more are tried"
    return f"With {number} {which} {fit} {fits}, and more do not help: {_tried(needed)}"


def _domain(label: AskedLabel) -> str:
    """A label of new nodes of which nobody knows the value, with those that the cluster has."""
    there = f"; those here have {some(label.there, 3)}" if label.there else ""
    return f"label {label.key} of each, which is not known{there}"


def in_domain(needed: NodesNeeded, invocation: Invocation) -> CommandLine | None:
    """The question with the first value that the cluster has of labels that decide; None where it has none."""
    if not needed.domains or not invocation.argv or not all(label.there for label in needed.domains):
        return None
    labels = ",".join(f"{LABEL}{label.key}={label.there[0]}" for label in needed.domains)
    exact = [f"{word},{labels}" if word == needed.nodes else word for word in invocation.argv]
    return invocation._replace(argv=tuple(exact)).refined()


def _after_others(needed: NodesNeeded) -> str:
    """Number of new nodes if waiting pods are placed first; empty where there are none."""
    if not needed.others:
        return ""
    one = len(needed.others) == 1
    who = f"pod {needed.others[0]}" if one else f"pods {some(needed.others, 2)}"
    if needed.after == needed.number:
        return f". The same if {who}, which {'waits' if one else 'wait'} already, {'is' if one else 'are'} placed first"
    takes = f"it takes {needed.after:,}" if needed.after is not None else f"not all of them fit: {_tried(needed)}"
    return f". If {who}, which {'waits' if one else 'wait'} already, {'is' if one else 'are'} placed first, {takes}"


def _tried(needed: NodesNeeded) -> str:
    return f"up to {needed.most:,} were tried"
