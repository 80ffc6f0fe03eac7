"""What is said of one claim for several pods leads to a claim for each, not back."""

from __future__ import annotations

from kubectl_dra.lint.rules import BY_CODE
from tests.lint.cases import Case, fixed, run

BAD = BY_CODE["DRA404"].bad()
NAMED = BAD.replace("resourceClaimName", "resourceClaimTemplateName")


def advice(code: str, text: str) -> list[str]:
    return [finding.advice for finding in run(Case(code, "", {"fail": text}), text)]


def test_the_advice_is_to_make_a_template() -> None:
    (told,) = advice("DRA404", BAD)
    assert told.startswith("Turn ResourceClaim one-gpu into a ResourceClaimTemplate, with its spec under spec.spec")


def test_the_name_alone_is_not_changed_back() -> None:
    """The template's name without a template: the claim is what is to be changed."""
    assert fixed(Case("DRA403", "", {"fail": NAMED})) == NAMED
    (told,) = advice("DRA403", NAMED)
    assert told.startswith("Turn ResourceClaim one-gpu into a ResourceClaimTemplate")
    assert told.endswith("write resourceClaimName only if 3 pods are to share it.")


def test_the_page_says_what_the_advice_does() -> None:
    assert advice("DRA404", BY_CODE["DRA404"].good()) == advice("DRA403", BY_CODE["DRA404"].good()) == []
    assert "kind: ResourceClaimTemplate" in BY_CODE["DRA404"].good()


def test_all_pods_of_a_daemon_set_share() -> None:
    daemon = BAD.replace("kind: Deployment", "kind: DaemonSet").replace("  replicas: 3\n", "")
    (found,) = run(Case("DRA404", "", {"fail": daemon}), daemon)
    assert found.message.startswith("all pods of the DaemonSet share the one claim one-gpu")
