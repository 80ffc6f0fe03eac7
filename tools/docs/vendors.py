"""Writes ``docs/vendors.md`` from the vendors' files and their schema; its path is the argument."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kubectl_dra.data.drivers import Driver, InstalledClass, VendorFile, catalogue, vendor_files
from kubectl_dra.data.messages import issue_url, known_messages
from kubectl_dra.migrate.vendors.check import schema

_OUTCOMES: Final = {
    "auto": "migrated",
    "note": "migrated, with advice",
    "ask": "asks",
    "refuse": "left alone",
    "keep": "stays",
}
_STATUS: Final = {
    "verified": "read in the sources",
    "documented": "from documentation",
    "weak": "from examples and secondary pages",
}
_ACTIONS: Final = {"remove": "removed", "keep": "stays", "quiet": "stays", "ask": "asks"}

_HEAD: Final = """\
# Vendors

What `kubectl dra` knows about device plugins and DRA drivers. Each vendor has one file in `kubectl_dra/data/vendors/`,
which `lint`, `migrate` and `explain` share; `make docs` generates this page from them.

A resource is **migrated** (its quantity becomes the count of a request), migrated **with advice** that is printed,
**asks** (only people can decide; the pod is left alone, and the report says what to decide), or is **left alone**
because DRA has nothing for it. A name that is in no file is listed in the report and never guessed.

A node label in `nodeSelector` or node affinity becomes a selector of the claim (**select**), stays, or is removed:
because the claim implies it (**implied**), or because it is a setting of the device plugin. A required affinity with
several terms is translated only if every expression of every term says something about the devices; preferences stay.
`Exists` on a label that becomes a selector is implied, and `DoesNotExist` is refused.
"""

_OWN: Final = """\
## Your own vendors

`--vendors FILE` adds vendors, one per YAML document. They take precedence over those on this page. Use it for names
that a cluster's administrator chose (SR-IOV resources, renamed GPUs):

```yaml
{example}```

`workloads` names kinds whose pods have claims, by the path of their pod specs; without it, what looks like a pod
template in an unknown kind is changed with `--unsafe` only.

Patterns are RE2 and must match the whole text. The whole file is checked when it is read: the schema
(`schemas/vendor.json`), duplicate names, unknown classes, and whether all CEL compiles on Kubernetes 1.34 and 1.36.
Selectors guard attributes that are not in a driver's `always`, so that devices without them are skipped. With
`like: [nvidia]`, NVIDIA's labels, environment and so on also apply to the vendor.
"""

EXAMPLE: Final = """\
vendor: acme
title: ACME NPUs, and names of our cluster
drivers:
  - {name: npu.acme.io, always: [model]}
classes:
  - {name: npu.acme.io, driver: npu.acme.io, selector: device.driver == 'npu.acme.io'}
resources:
  - {name: acme.io/npu, kind: whole, class: npu.acme.io}
  - pattern: acme\\.io/npu-(?P<model>[a-z0-9]+)
    kind: whole
    class: npu.acme.io
    selectors: ['device.attributes["npu.acme.io"].model == "{model}"']
  - name: intel.com/sriov_111
    kind: network
    class: sriovnetwork.k8snetworkplumbingwg.io
    selectors:
      - 'device.attributes["sriovnetwork.k8snetworkplumbingwg.io"].?resourceName.orValue("") == "sriov_111"'
  - {name: acme.io/fuse, kind: other, outcome: keep}
labels:
  - {key: acme.io/npu.model, action: select, attribute: model}
  - {key: acme.io/npu.memory, action: select, capacity: memory, compare: mebibytes}
workloads:
  - {group: train.acme.io, kind: TrainingRun, path: spec.groups.*.template.spec}
beside:
  - {where: env, name: ACME_VISIBLE_DEVICES, action: remove, message: The driver sets it.}
"""


def page() -> str:
    """The page as Markdown."""
    files = sorted(vendor_files().values(), key=lambda file: (not file.raw["resources"], file.raw["title"].lower()))
    titles = [file.raw["title"] for file in files]
    parts = [_HEAD, "".join(f"- [{title}](#{_anchor(title)})\n" for title in titles)]
    parts += ["\n".join(_vendor(file)) for file in files]
    parts += [_OWN.replace("{example}", EXAMPLE), "\n".join(_fields())]
    return "\n".join(parts)


def _vendor(file: VendorFile) -> Iterator[str]:
    raw = file.raw
    yield f"## {raw['title']}\n"
    yield f"{_STATUS[raw['status']].capitalize()}, {raw['as_of']}: {', '.join(raw['sources'])}.\n"
    drivers = [driver for name, driver in catalogue().drivers.items() if name in file.drivers]
    for driver in drivers:
        notes = [f"It needs Kubernetes {driver.kubernetes} or later."] if driver.kubernetes else []
        if notes or driver.notes:
            yield f"Driver `{driver.name}`: {' '.join((*notes, *driver.notes))}\n"
        yield from _gates(driver)
        yield from _messages(driver)
    classes = {name: installed for driver in drivers for name, installed in driver.classes.items()}
    for name in dict.fromkeys(entry["class"] for entry in raw["resources"] if "class" in entry):
        other = catalogue().of_class(name)
        if other is not None:
            classes[name] = other.classes[name]
    yield from _table(
        "Class | Driver | Carries the resource name", [_class(installed) for installed in classes.values()]
    )
    yield from _table("Resource | Becomes | What happens", [_resource(entry) for entry in raw["resources"]])
    labels = [*raw.get("labels", ()), *raw.get("annotations", ())]
    yield from _table("Node label or annotation | What happens", [_label(entry) for entry in labels])
    yield from _table("Beside it | What happens", [_flag(entry) for entry in raw.get("beside", ())])
    yield from _table(
        "Not one to one | Advice", [(entry["what"], entry["advice"]) for entry in raw.get("not_one_to_one", ())]
    )


def _gates(driver: Driver) -> Iterator[str]:
    """The feature gates of a driver, and what needs them."""
    rows = []
    for gate in driver.gates:
        needed = [f"class `{name}`" for name in gate.classes] + [f"config `{kind}`" for kind in gate.kinds]
        needed += [f"config `{path}: {value}`" for path, value in gate.config.items()]
        rows.append((f"`{gate.name}`", gate.since, "on" if gate.on else "off", gate.does, ", ".join(needed)))
    yield from _table(f"Feature gate of `{driver.name}` | Since | Default | What it does | Needed by", rows)


def _messages(driver: Driver) -> Iterator[str]:
    """What a driver says, what it means and what to do."""
    rows = []
    said = next((entry.says for entry in known_messages() if entry.says[0] == driver.name), ())
    for entry in known_messages():
        if driver.name == entry.says[0]:
            # Once for all drivers of the vendor that say it.
            known = f" ([{entry.known}]({issue_url(entry.known)}))" if entry.known else ""
            rows.append((_code(entry.example), _text(_plain(entry.means)), _text(_plain(entry.do)) + known))
    names = ", ".join(f"`{name}`" for name in said)
    yield from _table(f"Message of {names} | What it means | What to do", rows)


def _plain(text: str) -> str:
    """A template of a message, with names in place of its parts."""
    return re.sub(r"\{(\w+)\}", r"\1", text)


def _table(head: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield f"| {head} |"
        yield "|" + "---|" * len(rows[0])
        yield from (f"| {' | '.join(row)} |" for row in rows)
        yield ""


def _class(found: InstalledClass) -> tuple[str, str, str]:
    carried = f"{_code(found.extended_resource)} ({found.since})" if found.extended_resource else ""
    return _code(found.name), _code(found.driver), ". ".join(filter(None, (carried, found.note)))


def _resource(raw: Mapping[str, Any]) -> tuple[str, str, str]:
    becomes = [_code(raw["class"])] if "class" in raw else []
    becomes += [_code(selector) for selector in raw.get("selectors", ())]
    if "part_of" in raw:
        becomes = [f"capacity of {_code(raw['part_of'])}"]
    if raw.get("mode") == "All":
        becomes.append("all devices of a node")
    said = _OUTCOMES[raw.get("outcome", "auto")]
    if "message" in raw:
        said += f": {_text(raw['message'])}"
    return _name(raw), "<br>".join(becomes), f"{said} {_text(raw.get('way_out', ''))}".strip()


def _label(raw: Mapping[str, Any]) -> tuple[str, str]:
    note = _text(raw.get("note", ""))
    what = (
        f"attribute {_code(raw['attribute'])}" if "attribute" in raw else f"capacity {_code(raw.get('capacity', ''))}"
    )
    said = {
        "select": f"select: {what}",
        "keep-and-select": f"stays, and select: {what}",
        "keep": "stays",
        "drop": "implied",
        "setting": "goes",
    }[raw["action"]]
    if "same_as" in raw:
        said = f"as {_code(raw['same_as'])}"
    if "class" in raw:
        said += f", class {_code(raw['class'])}"
    for suffix in raw.get("suffixes", ()):
        ending = (
            f"class {_code(suffix['class'])}" if "class" in suffix else _text(suffix.get("refuse") or suffix["note"])
        )
        said += f"<br>ending {_code(suffix['pattern'])}: {ending}"
    return _name(raw), f"{said}. {note}".rstrip() if note else said


def _flag(raw: Mapping[str, Any]) -> tuple[str, str]:
    said = _ACTIONS[raw["action"]]
    return f"{raw['where']} {_name(raw)}", f"{said}: {_text(raw['message'])}" if "message" in raw else said


def _fields() -> Iterator[str]:
    """The fields of a vendor's file that the schema describes."""
    whole = schema()
    yield "### Fields\n"
    yield "| Field | Meaning |"
    yield "|---|---|"
    for where, part in (("", whole), *((f"{name}: ", below) for name, below in whole["$defs"].items())):
        for name, field in part.get("properties", {}).items():
            if "description" in field:
                yield f"| {where}{_code(name)} | {_text(field['description'])} |"
    yield ""


def _name(raw: Mapping[str, Any]) -> str:
    return _code(raw["name"] if "name" in raw else raw["key"] if "key" in raw else raw["pattern"])


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _anchor(title: str) -> str:
    kept = "".join(character for character in title.lower() if character.isalnum() or character in " -_")
    return kept.replace(" ", "-")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
