"""Feature gates of drivers, which the scheduler does not know: what a claim needs, and what drivers' pods have on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.causes.selectors import CLASS_MATCHES_NOTHING
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Phrase, Subject, Words, nodes_named, say


def gate_notes(analysis: Analysis) -> Iterator[Phrase]:
    """Configurations of the claims that need a gate which is off where the pod is, or on every node where it may go."""
    pod, claims = analysis.pod, [claim for claim in (*analysis.allocated, *analysis.claims) if claim.config]
    if not claims:
        return
    from kubectl_dra.explain.gates_needed import gates_needed

    for claim in claims:
        node = pod.node_name if pod is not None and claim.allocation is not None else ""
        for needed in gates_needed(claim):
            if off := needed.off_on(node, analysis.snapshot):
                text = (
                    "driver {driver} has gate {gate} off on {nodes:some 2}, and claim {claim} needs it "
                    "({needing}): its driver refuses the claim; install it with featureGates.{gate}=true"
                )
                words: dict[str, Words] = {"gate": needed.gate.name, "driver": needed.driver}
                words |= {"needing": needed.needing, "claim": needed.claim}
                yield say(text, nodes=nodes_named(off), **words)


def with_gates(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; of a class that nothing matches, because a gate of its driver is off, with that as the reason."""
    return [_with_gate(analysis, finding) if finding.kind is CLASS_MATCHES_NOTHING else finding for finding in findings]


def _with_gate(analysis: Analysis, finding: Finding) -> Finding:
    from kubectl_dra.data.drivers import catalogue
    from kubectl_dra.explain.gates_needed import gate_off

    names = {located.funnel.device_class.name for located in analysis.funnels if located.funnel.name == finding.request}
    for name in names:
        driver = catalogue().of_class(name)
        for gate in driver.gates if driver is not None else ():
            if name not in gate.classes or driver is None:
                continue
            off = gate_off(analysis.snapshot, driver.name, gate, "")
            if off:
                nodes = nodes_named([row.node for row in off])
                text = (
                    "Install the driver with the Helm value featureGates.{gate}=true: without it {title} publishes no "
                    "such devices{instead}."
                )
                instead: Words = say(". Or {instead}", instead=gate.instead) if gate.instead else ""
                fact = Evidence(
                    Subject("driver", driver.name),
                    say("feature gate {gate}", gate=gate.name),
                    say("off on {nodes:some 2} ({does})", nodes=nodes, does=gate.does),
                )
                remedy = Remedy(say(text, gate=gate.name, title=driver.title, instead=instead))
                return replace(finding, evidence=(fact, *finding.evidence), remedy=remedy)
    return finding
