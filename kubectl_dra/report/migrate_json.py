"""The plan of a migration as JSON, in the shape of ``schemas/migrate.json``."""

from __future__ import annotations

from typing import Any

from kubectl_dra.migrate.codes import PAGES
from kubectl_dra.migrate.model import ClusterHas, MigrationReport, Moved, Remark
from kubectl_dra.report.json_shapes import SCHEMA_VERSION, filled
from kubectl_dra.text import page_of


def to_json(report: MigrationReport) -> dict[str, Any]:
    """The report: what was assumed, counts, and for each file the remarks and whether it changes."""
    settings = report.settings
    out: dict[str, Any] = {
        "schemaVersion": SCHEMA_VERSION,
        "kind": "MigrationReport",
        "assumed": {
            "kubernetesVersion": str(settings.release),
            "apiVersion": f"resource.k8s.io/{settings.version}",
            "strategy": settings.strategy,
            "share": settings.share,
            "unsafe": report.unsafe,
        },
        "summary": {
            "files": report.read,
            "objects": report.manifests,
            "filesChanged": len(report.changed),
            "changes": len(report.items("change")),
            "newObjects": len(report.items("object")),
            "offers": len(report.items("offer")),
            "notes": len(report.items("note")),
            "refusals": len(report.items("refusal")),
            "ignored": report.ignored,
        },
        "moved": [_moved(moved_request, report.has) for moved_request in report.moved],
        "files": [
            {"name": file.name, "changed": file.changed, "items": [*map(_item, file.items)]}
            for file in report.all_files
        ],
        "notes": list(report.notes),
        "defects": list(report.defects),
    }
    if report.comparisons is not None:
        from kubectl_dra.report.migrate_text import to_json as equivalence

        out["equivalence"] = equivalence(report.comparisons)
    return out


def _moved(moved: Moved, has: ClusterHas | None) -> dict[str, Any]:
    exists = has.classes.get(moved.device_class) if has is not None else None
    publishes = has.drivers.get(moved.driver) if has is not None else None
    known = filled(deviceClassExists=exists, driverPublishes=publishes)
    return {"resource": moved.resource, "deviceClassName": moved.device_class, "driver": moved.driver, **known}


def _item(item: Remark) -> dict[str, Any]:
    page = PAGES.get(item.code)
    return {
        "sort": item.sort,
        "code": item.code,
        "name": "" if page is None else page.name,
        "line": item.line,
        "column": item.column,
        "object": item.object,
        "field": item.field,
        "message": item.message,
        "page": page_of("changes", item.code),
        **({"safety": item.safety} if item.sort in ("change", "object", "offer") else {}),
        **filled(newObject=item.new, origin=item.origin, fix=filled(text=item.way_out)),
    }
