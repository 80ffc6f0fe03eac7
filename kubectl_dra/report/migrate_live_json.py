"""What still uses device plugins in a cluster as JSON, in the shape of ``schemas/migrate-live.json``."""

from __future__ import annotations

from typing import Any, Final

from kubectl_dra.migrate.rollout.survey import Survey

SCHEMA_VERSION: Final = "1"


def to_json(survey: Survey) -> dict[str, Any]:
    """The survey: who uses what, which devices are handed out twice, and the progress of each namespace."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "MigrationSurvey",
        "kubernetesVersion": survey.release,
        "namespace": survey.namespace,
        "uses": [use._asdict() for use in survey.uses],
        "clashes": [{**clash._asdict(), "same": list(clash.same)} for clash in survey.clashes],
        "namespaces": [
            {**one._asdict(), "reasons": list(one.reasons), "todo": list(one.todo)} for one in survey.namespaces
        ],
        "notes": list(survey.notes),
    }
