"""JSON Schemas of the kinds this project reads, from the OpenAPI of a running API server.

    python -m tools.controlplane.schemas

writes `schemas/kubernetes/<minor>/<group>_<version>_<kind>.json` (the core group is called `core`), each complete in
itself. With one shared file of definitions all would be 140 kB instead of 500, but a reader needs one or two kinds
at a time (5 to 60 kB), and no resolver of references between files.

The schemas say what the server's strict decoder accepts, so they differ from the OpenAPI in three ways: fields it
does not name are forbidden, null stands for "not set" everywhere, and `apiVersion` and `kind` are fixed.
Descriptions, defaults and merge strategies are left out.

One thing they are stricter in: `required`, taken over as published, names some fields that the server does not insist
on (the `spec` of a DeviceClass, the `generation` of a pool). A linter that must not be stricter than the server
ignores that keyword.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.controlplane.client import Api, Json
from tools.controlplane.plane import own_plane
from tools.controlplane.program import VERSION_VARIABLE, Unavailable, default_minor, find_program

DIRECTORY = Path(__file__).parents[2] / "schemas" / "kubernetes"
WORKLOADS = {
    "v1": ("Pod", "ResourceQuota"),
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1": ("CronJob", "Job"),
}
DEFINITION_PREFIX = "#/components/schemas/"
OWN_SCHEMA = "_ResourcePoolStatusRequest.json"
"""The one kind of resource.k8s.io that is decoded by its schema."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schemas(api: Api) -> dict[str, str]:
    """The text of every schema file, by its path below `schemas/kubernetes`."""
    version = api.request("GET", "/version")
    minor = f"{version['major']}.{version['minor']}"
    wanted = {f"resource.k8s.io/{each}": tuple[str, ...]() for each in api.versions("resource.k8s.io")}
    texts = {}
    for api_version, kinds in (wanted | WORKLOADS).items():
        group, _, group_version = api_version.rpartition("/")
        root = "apis" if group else "api"
        definitions: Json = api.request("GET", f"/openapi/v3/{root}/{api_version}")["components"]["schemas"]
        for kind in kinds or sorted(api.kinds(api_version)):
            name = f"{group or 'core'}_{group_version}_{kind}.json"
            schema = _schema(definitions, api_version, kind)
            texts[f"{minor}/{name}"] = _text(schema)
    return texts


def changes(api: Api, directory: Path = DIRECTORY) -> Json:
    """What the server has otherwise than the schemas of the release that must pass, where lint decodes by them.

    `fields` are the schemas of fields by definition, null for those that are gone; `structs` are new definitions.
    """
    fields: dict[str, dict[str, Json | None]] = {}
    structs: dict[str, Json] = {}
    for path, text in schemas(api).items():
        name = Path(path).name
        known = directory / default_minor() / name
        if not known.exists() or (name.startswith("resource.k8s.io") and not name.endswith(OWN_SCHEMA)):
            continue
        before, now = json.loads(known.read_text())["$defs"], json.loads(text)["$defs"]
        structs |= {struct: schema for struct, schema in now.items() if struct not in before}
        for struct, schema in now.items():
            old, new = before.get(struct, schema).get("properties", {}), schema.get("properties", {})
            names = [field for field in old | new if _type(old.get(field)) != _type(new.get(field))]
            if names:
                fields[struct] = {field: new.get(field) for field in names}
    return {"fields": fields, "structs": structs}


def _type(schema: Json | None) -> object:
    """What a decoder sees of a schema: neither enumerations nor how lists merge."""
    return schema and {key: schema[key] for key in schema.keys() & {"$ref", "type", "items", "format"}}


def write(api: Api, directory: Path = DIRECTORY) -> list[Path]:
    """Write the schemas of this server's minor version, remove what it no longer serves, and return the files."""
    texts = schemas(api)
    for folder in {Path(path).parent for path in texts}:
        for old in (directory / folder).glob("*.json"):
            if f"{folder}/{old.name}" not in texts:
                old.unlink()
    for path, text in texts.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return [directory / path for path in sorted(texts)]


def _schema(definitions: Json, api_version: str, kind: str) -> Json:
    """The schema of one kind with all the definitions it reaches."""
    group, _, version = api_version.rpartition("/")
    identity = {"group": group, "version": version, "kind": kind}
    root = next(
        name
        for name, definition in definitions.items()
        if identity in definition.get("x-kubernetes-group-version-kind", [])
    )
    top = _strict(definitions[root])
    top["type"] = "object"
    top["properties"] |= {"apiVersion": {"const": api_version}, "kind": {"const": kind}}
    top["required"] = sorted({*top.get("required", []), "apiVersion", "kind"})
    reached: dict[str, Json] = {}
    waiting = list(_references(definitions[root]))
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = _strict(definitions[name])
            waiting.extend(_references(definitions[name]))
    return {"$schema": DIALECT, "title": f"{kind} {api_version}", **top, "$defs": reached}


def _strict(schema: Json) -> Json:
    """What an OpenAPI schema of Kubernetes means, as JSON Schema."""
    if "allOf" in schema:
        # The server wraps a reference so that it can stand beside a description.
        (only,) = schema["allOf"]
        return _strict(only)
    if "$ref" in schema:
        return {"$ref": "#/$defs/" + schema["$ref"].removeprefix(DEFINITION_PREFIX)}
    result: Json = {}
    if types := [each["type"] for each in schema.get("oneOf", [schema]) if "type" in each]:
        result["type"] = [*types, "null"]
    if "enum" in schema:
        result["enum"] = [*sorted(schema["enum"]), None]
    for key in ("format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
        if key in schema:
            result[key] = schema[key]
    if "items" in schema:
        result["items"] = _strict(schema["items"])
    if "properties" in schema:
        result["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        result["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = _strict(schema["additionalProperties"])
    return result


def _text(schema: Json) -> str:
    """JSON in a fixed order with one line per definition, so that a change shows where it is."""
    definitions = ",\n".join(f"{_compact(name)}:{_compact(each)}" for name, each in sorted(schema["$defs"].items()))
    rest = {key: value for key, value in schema.items() if key != "$defs"}
    lines = [f"{_compact(key)}:{_compact(value)}" for key, value in sorted(rest.items())]
    return "{" + ",\n".join([f'"$defs":{{\n{definitions}}}', *lines]) + "}\n"


def _compact(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(DEFINITION_PREFIX)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def main() -> None:
    """Start a control plane, write the schemas, or of another release what it has otherwise, and print their paths."""
    parser = argparse.ArgumentParser(prog="python -m tools.controlplane.schemas")
    parser.add_argument("--kubernetes", metavar="MINOR", default=default_minor(), help="such as 1.37")
    minor = parser.parse_args().kubernetes
    os.environ[VERSION_VARIABLE] = minor
    try:
        program = find_program(lambda text: print(text, file=sys.stderr))
    except Unavailable as reason:
        sys.exit(str(reason))
    with (
        tempfile.TemporaryDirectory() as directory,
        own_plane(program, ["--profile=full"], Path(directory)) as plane,
    ):
        if minor == default_minor():
            print(*write(plane.api()), sep="\n")
            return
        file = DIRECTORY / minor / "changes.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(changes(plane.api()), sort_keys=True, indent=1) + "\n")
        print(file)


if __name__ == "__main__":
    main()
