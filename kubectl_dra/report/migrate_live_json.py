"""What of a cluster still uses device plugins as JSON, in the shape of ``schemas/migrate-live.json``."""

from __future__ import annotations

import json
from typing import Any, Final, TextIO

from kubectl_dra.migrate.live import Survey

SCHEMA_VERSION: Final = "1"


def write_survey(survey: Survey, stream: TextIO) -> None:
    """Writes the survey."""
    json.dump(to_json(survey), stream, indent=2, ensure_ascii=False)
    stream.write("\n")


def to_json(survey: Survey) -> dict[str, Any]:
    """The survey: who uses what, which devices are handed out twice, how far each namespace is."""
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
