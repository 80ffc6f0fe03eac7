"""Ports of containers, and the host ports that they request.

From ``validateContainerPorts`` and ``AccumulateUniqueHostPorts`` of Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubectl_dra.admission.server.model import DUPLICATE, INVALID, Path, Violations, missing, text, violation
from kubectl_dra.admission.server.taints import unsupported

_RULE: Final = "container-port"
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_NAME: Final = re.compile(r"[a-z0-9-]{1,15}")


def check_ports(container: Mapping[str, Any], at: Path, *, on_host: bool) -> Violations:
    """``ports`` of one container. ``on_host``: of a pod in the host's network, where they are also host ports."""
    names: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        port = port or {}
        here = (*at, "ports", index)
        name = text(port, "name")
        if name:
            problems = tuple(_name_problems(name))
            for problem in problems:
                yield violation((*here, "name"), INVALID, _RULE, problem)
            if not problems and name in names:
                yield violation((*here, "name"), DUPLICATE, _RULE, f"{name!r} is already in the list")
            names.add(name)
        number = port.get("containerPort") or 0
        host = port.get("hostPort") or (number if on_host else 0)
        if not number:
            yield missing((*here, "containerPort"), _RULE)
        for field, value in (("containerPort", number), ("hostPort", host)):
            if value and not 1 <= value <= 65_535:
                yield violation((*here, field), INVALID, _RULE, "must be between 1 and 65535")
        protocol = text(port, "protocol") or "TCP"
        if protocol not in _PROTOCOLS:
            yield unsupported(protocol, (*here, "protocol"), _RULE, _PROTOCOLS)


def _name_problems(name: str) -> Sequence[str]:
    """What is wrong with the name of a port (an IANA service name)."""
    out = []
    if len(name) > 15:
        out.append("must not have more than 15 characters")
    if not _NAME.fullmatch(name[:15]):
        out.append("must be lower case letters, digits and '-'")
    if not re.search("[a-z]", name):
        out.append("must have a letter")
    if "--" in name:
        out.append("must not have '--'")
    if name.startswith("-") or name.endswith("-"):
        out.append("must not begin or end with '-'")
    return out


def check_host_ports(spec: Mapping[str, Any], at: Path, *, is_pod: bool) -> Violations:
    """Host ports of a pod's containers: each only once, and with hostNetwork equal to the container port."""
    taken: set[tuple[str, str, int]] = set()
    for number, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate((container or {}).get("ports") or ()):
            port = port or {}
            here = (*at, "containers", number, "ports", index, "hostPort")
            host, own = port.get("hostPort") or 0, port.get("containerPort") or 0
            if is_pod and spec.get("hostNetwork"):
                host = host or own
            if spec.get("hostNetwork") and host and host != own:
                yield violation(here, INVALID, _RULE, "must be the containerPort with hostNetwork")
            if not host:
                continue
            key = (text(port, "hostIP"), text(port, "protocol") or "TCP", host)
            if key in taken:
                yield violation(here, DUPLICATE, _RULE, f"{host} is taken by another container")
            taken.add(key)
