"""Feature gates of drivers, without which classes match nothing: the scheduler does not know them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubectl_dra.explain.analysis import Analysis
from kubectl_dra.explain.causes.selectors import CLASS_MATCHES_NOTHING
from kubectl_dra.explain.diagnosis import Evidence, Finding, Remedy
from kubectl_dra.explain.phrase import Subject, Words, nodes_named, say


def with_gates(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; of a class that nothing matches, because a gate of its driver is off, with that as the reason."""
    return [_with_gate(analysis, finding) if finding.kind is CLASS_MATCHES_NOTHING else finding for finding in findings]


def _with_gate(analysis: Analysis, finding: Finding) -> Finding:
    from kubectl_dra.data.drivers import catalogue
    from kubectl_dra.drivers.refused_claims import gate_off

    names = {located.funnel.device_class.name for located in analysis.funnels if located.funnel.name == finding.request}
    for name in names:
        driver = catalogue().of_class(name)
        for gate in driver.gates if driver is not None else ():
            if name not in gate.classes or driver is None:
                continue
            off = gate_off(analysis.snapshot, driver.name, gate)
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
