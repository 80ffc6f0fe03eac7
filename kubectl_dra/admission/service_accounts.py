"""ServiceAccount: the account of a pod must exist."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from kubectl_dra.admission.refusal import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.pods import Pod

ALWAYS: Final = "default"
"""The account that comes with its namespace."""


class ServiceAccountMissing(Refusal, frozen=True):
    """The pod's service account does not exist."""

    @property
    def plugin(self) -> AdmissionPlugin:
        """ServiceAccount."""
        return AdmissionPlugin.SERVICE_ACCOUNT

    @property
    def words(self) -> str:
        """The text of the plugin."""
        name = self.concerned.name
        return f'error looking up service account {self.concerned.namespace}/{name}: serviceaccount "{name}" not found'


def refusal(pod: Pod, accounts: Set[str] | None) -> Refusal | None:
    """Why a pod is refused for its account; None if it exists, or accounts were not read."""
    name = pod.spec.service_account_name or ALWAYS
    if accounts is None or name in accounts:
        return None
    return ServiceAccountMissing(Concerned("ServiceAccount", name, pod.metadata.namespace))
