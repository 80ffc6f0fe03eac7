"""The funnel of a request with its place among the claims of a question."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kubectl_dra.allocation.extended_resources import CLAIM_NAME, MADE_FOR_EXTENDED
from kubectl_dra.api.claims import ALL, ResourceClaim
from kubectl_dra.explain.funnel.request_funnel import RequestFunnel
from kubectl_dra.explain.phrase import Phrase, say
from kubectl_dra.explain.remedies.claim_edits import RequestPlace


class Located(Struct, frozen=True):
    """A funnel with its place: indices of claim, request and alternative.

    ``container`` is the one that asks for an extended resource, the ``limit``; both are empty for a request that
    somebody wrote. ``ambiguous``: another claim has a request of this name.
    """

    claim_index: int
    request_index: int
    alternative: int
    claim: ResourceClaim
    funnel: RequestFunnel
    container: str = ""
    limit: str = ""
    ambiguous: bool = False

    @property
    def where(self) -> Phrase:
        """The request in words: the name of an extended resource's request is not the user's."""
        if made_by_scheduler(self.claim) and self.resource:
            text = (
                "the request of container {container} for {resource}"
                if self.container
                else "the request for {resource}"
            )
            return say(text, container=self.container, resource=self.resource)
        return say('request "{name}"', name=self.funnel.name)

    @property
    def among_all(self) -> Phrase:
        """The same, with the claim where another one has a request of this name."""
        if self.ambiguous:
            return say("{where} of claim {claim}", where=self.where, claim=self.claim.key)
        return self.where

    @property
    def resource(self) -> str:
        """The extended resource that the class of the request serves; empty if there is none."""
        return self.limit or self.funnel.device_class.extended_resource_name

    @property
    def place(self) -> RequestPlace:
        """The place in the form that changes use."""
        extended = made_by_scheduler(self.claim)
        limit = (self.resource, self.container) if extended else ("", "")
        of = self.claim.key if self.ambiguous else ""
        name = self.funnel.name
        return RequestPlace(self.claim_index, self.request_index, self.alternative, name, extended, *limit, of)

    @property
    def names(self) -> tuple[str, str]:
        """The names of the request and its subrequest, empty if there is none."""
        main, _, sub = self.funnel.name.partition("/")
        return main, sub

    @property
    def needed(self) -> str:
        """Number of devices that the request needs, or ``all``."""
        spec = self.funnel.spec
        return "all" if spec.allocation_mode == ALL else str(spec.count)


def made_by_scheduler(claim: ResourceClaim) -> bool:
    """Whether the scheduler makes the claim, for extended resources, so that its requests are not the user's."""
    return claim.metadata.name == CLAIM_NAME or claim.metadata.annotations.get(MADE_FOR_EXTENDED) == "true"


def by_request(funnels: Sequence[Located]) -> list[list[Located]]:
    """The funnels of each request together: one, or one for each alternative."""
    groups: dict[tuple[int, int], list[Located]] = {}
    for located in funnels:
        groups.setdefault((located.claim_index, located.request_index), []).append(located)
    return list(groups.values())
