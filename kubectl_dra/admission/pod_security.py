"""Pod Security: what a namespace labelled ``pod-security.kubernetes.io/enforce`` forbids its pods.

The checks of ``k8s.io/pod-security-admission`` on a pod as written. Its security settings affect nothing
else, so they are read here from the manifest and not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from kubectl_dra.admission.plugins import AdmissionPlugin, Concerned, Refusal
from kubectl_dra.api.behaviour import (
    CAPABILITIES_RESTRICTED,
    ENGINE_TYPE,
    LATEST_STANDARDS,
    OWN_USERS_EXEMPT,
    PROBE_HOSTS_REFUSED,
    SYSCTL_RESERVED_PORTS,
    SYSCTLS_BUFFERS,
    SYSCTLS_KEEPALIVE,
    USERS_RESTRICTED,
    WINDOWS_EXEMPT,
)
from kubectl_dra.api.releases import Release, Releases
from kubectl_dra.text import whole_number

ENFORCE: Final = "pod-security.kubernetes.io/enforce"
ENFORCE_VERSION: Final = "pod-security.kubernetes.io/enforce-version"

_CAPABILITIES: Final = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SYSCTLS: Final = (
    *(
        (Releases(), name)
        for name in ("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies")
    ),
    *((Releases(), name) for name in ("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start")),
    (SYSCTL_RESERVED_PORTS, "net.ipv4.ip_local_reserved_ports"),
    *((SYSCTLS_KEEPALIVE, f"net.ipv4.tcp_{name}") for name in ("keepalive_time", "fin_timeout", "keepalive_intvl")),
    (SYSCTLS_KEEPALIVE, "net.ipv4.tcp_keepalive_probes"),
    *((SYSCTLS_BUFFERS, f"net.ipv4.tcp_{name}") for name in ("rmem", "wmem")),
)
"""Sysctls that are safe, with the versions of the policy that allow them."""
_SELINUX: Final = ("", "container_t", "container_init_t", "container_kvm_t")
_VOLUMES: Final = (
    *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim"),
    *("projected", "secret"),
)
_PROFILES: Final = ("RuntimeDefault", "Localhost")
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_ANNOTATED: Final = {"runtime": "RuntimeDefault", "localhost": "Localhost", "unconfined": "Unconfined"}

Raw = Mapping[str, Any]


class Breach(NamedTuple):
    """One rule of the policy that a pod breaks: the server's name for it, the offenders and their settings."""

    rule: str
    detail: str


class PodSecurityLevel(NamedTuple):
    """What a namespace enforces: ``baseline`` or ``restricted``, and the version of that policy."""

    level: str
    version: Release

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.version == LATEST_STANDARDS else f'v{self.version}'}"


class PodSecurityBroken(Refusal, frozen=True):
    """The pod breaks the policy that its namespace enforces."""

    policy: PodSecurityLevel
    breaches: tuple[Breach, ...]

    plugin: ClassVar = AdmissionPlugin.POD_SECURITY

    @property
    def words(self) -> str:
        """The text of the plugin."""
        breaches = ", ".join(f"{breach.rule} ({breach.detail})" for breach in self.breaches)
        return f'violates PodSecurity "{self.policy}": {breaches}'


def enforced(labels: Mapping[str, str]) -> PodSecurityLevel | None:
    """What the labels of a namespace enforce; None for nothing or ``privileged``. An invalid label means restricted."""
    level = labels.get(ENFORCE, "privileged")
    if level == "privileged":
        return None
    known = level in ("baseline", "restricted")
    major, _, minor = labels.get(ENFORCE_VERSION, "latest").removeprefix("v").partition(".")
    numbers = [number for part in (major, minor) if (number := whole_number(part)) is not None]
    version = Release(*numbers) if len(numbers) == 2 else LATEST_STANDARDS
    return PodSecurityLevel(level if known else "restricted", version if known else LATEST_STANDARDS)


def refusal(pod: Raw, namespace: str, labels: Mapping[str, str]) -> Refusal | None:
    """Why a pod as written is refused in a namespace with these labels; None if it is not."""
    policy = enforced(labels)
    if policy is None:
        return None
    breaches = tuple(_breaches(pod, policy))
    return PodSecurityBroken(Concerned("Namespace", namespace), policy, breaches) if breaches else None


def _breaches(pod: Raw, policy: PodSecurityLevel) -> Iterator[Breach]:
    spec = pod.get("spec") or {}
    restricted = policy.level == "restricted"
    overridden = {_capabilities, _host_paths, _seccomp, _proc_mount} if restricted else set[Check]()
    checks = (*(check for check in _BASELINE if check not in overridden), *(_RESTRICTED if restricted else ()))
    return (breach for check in checks if (breach := check(pod, spec, policy.version)) is not None)


def _containers(spec: Raw) -> Iterator[Raw]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from (container or {} for container in spec.get(field) or ())


def _security(owner: Raw) -> Raw:
    return owner.get("securityContext") or {}


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _named(names: Sequence[str], what: str = "container") -> str:
    return f"{what}{'' if len(names) == 1 else 's'} {_quoted(names)}"


def _use(names: Sequence[str]) -> str:
    return "uses" if len(names) == 1 else "use"


def _names(spec: Raw, bad: Callable[[Raw], bool]) -> list[str]:
    return [str(container.get("name") or "") for container in _containers(spec) if bad(container)]


def _setters(spec: Raw, bad: Callable[[Raw], bool]) -> str:
    """The pod and containers whose security settings violate a rule, as the server lists them."""
    names = _names(spec, lambda container: bad(_security(container)))
    return " and ".join(["pod"] * bad(_security(spec)) + ([_named(names)] if names else []))


def _own_users(spec: Raw, version: Release) -> bool:
    """Whether the pod has its own user namespace, in which it may be root (KEP-127)."""
    return version in OWN_USERS_EXEMPT and spec.get("hostUsers") is False


def _windows(spec: Raw, version: Release) -> bool:
    return version in WINDOWS_EXEMPT and (spec.get("os") or {}).get("name") == "windows"


def _apparmor(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    annotations: Mapping[str, str] = (pod.get("metadata") or {}).get("annotations") or {}
    kinds: set[str] = set()

    def bad(kind: str | None) -> bool:
        wrong = kind is not None and kind not in _PROFILES
        kinds.update([kind] if wrong and kind is not None else [])
        return wrong

    def of_container(container: Raw) -> str | None:
        # The server writes the old annotation into the field before the policy looks at it, where it says more.
        written = _apparmor_of(_security(container))
        old = annotations.get(f"{_APPARMOR}{container.get('name')}", "")
        kind = _ANNOTATED.get(old.partition("/")[0])
        return kind if written is None and kind != _apparmor_of(_security(spec)) else written

    names = _names(spec, lambda container: bad(of_container(container)))
    setters = ["pod"] * bad(_apparmor_of(_security(spec))) + ([_named(names)] if names else [])
    wrong = sorted(
        f'{key}="{value}"'
        for key, value in annotations.items()
        if key.startswith(_APPARMOR) and value and value != "runtime/default" and not value.startswith("localhost/")
    )
    if wrong:
        setters.append(f"annotation{'s' if len(wrong) > 1 else ''}")
    if not setters:
        return None
    types = [*sorted(kinds), *wrong]
    rule = f"forbidden AppArmor profile{'s' if len(types) > 1 else ''}"
    return Breach(rule, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(types)}")


def _apparmor_of(security: Raw) -> str | None:
    profile = security.get("appArmorProfile")
    return None if profile is None else profile.get("type") or ""


def _added(container: Raw) -> list[str]:
    return list((_security(container).get("capabilities") or {}).get("add") or ())


def _capabilities(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    names = _names(spec, lambda container: bool(set(_added(container)) - _CAPABILITIES))
    if not names:
        return None
    more = sorted({name for container in _containers(spec) for name in _added(container)} - _CAPABILITIES)
    detail = f"{_named(names)} must not include {_quoted(more)} in securityContext.capabilities.add"
    return Breach("non-default capabilities", detail)


def _host_namespaces(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    return Breach("host namespaces", ", ".join(used)) if used else None


def _host_paths(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    names = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Breach("hostPath volumes", _named(names, "volume")) if names else None


def _host_ports(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    def taken(container: Raw) -> list[int]:
        # In the host's network a port of the container is one of the host.
        field = "containerPort" if spec.get("hostNetwork") else "hostPort"
        return [
            port
            for container_port in container.get("ports") or ()
            if (port := container_port.get("hostPort") or container_port.get(field))
        ]

    names = _names(spec, lambda container: bool(taken(container)))
    if not names:
        return None
    ports = sorted({str(port) for container in _containers(spec) for port in taken(container)})
    what = f"hostPort{'s' if len(ports) > 1 else ''} {', '.join(ports)}"
    return Breach("hostPort", f"{_named(names)} {_use(names)} {what}")


def _host_probes(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    if version not in PROBE_HOSTS_REFUSED:
        return None

    def hosts(container: Raw) -> set[str]:
        life = container.get("lifecycle") or {}
        probes = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
        handlers = [*probes, life.get("postStart"), life.get("preStop")]
        values = [
            ((handler or {}).get(kind) or {}).get("host") for handler in handlers for kind in ("httpGet", "tcpSocket")
        ]
        return {host for host in values if host}

    names = sorted(set(_names(spec, lambda container: bool(hosts(container)))))
    if not names:
        return None
    used = sorted({host for container in _containers(spec) for host in hosts(container)})
    what = f"probe or lifecycle host{'s' if len(used) > 1 else ''}"
    return Breach("probe or lifecycle host", f"{_named(names)} {_use(names)} {what} {_quoted(used)}")


def _privileged(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    names = _names(spec, lambda container: bool(_security(container).get("privileged")))
    return Breach("privileged", f"{_named(names)} must not set securityContext.privileged=true") if names else None


def _proc_mount(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    return None if _own_users(spec, version) else _proc_mount_restricted(pod, spec, version)


def _proc_mount_restricted(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    def kind(container: Raw) -> str:
        return _security(container).get("procMount") or "Default"

    names = _names(spec, lambda container: kind(container) != "Default")
    if not names:
        return None
    kinds = sorted({kind(container) for container in _containers(spec)} - {"Default"})
    return Breach("procMount", f"{_named(names)} must not set securityContext.procMount to {_quoted(kinds)}")


def _selinux(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    allowed = (*_SELINUX, "container_engine_t") if version in ENGINE_TYPE else _SELINUX
    seen: list[Raw] = []

    def bad(security: Raw) -> bool:
        options = security.get("seLinuxOptions") or {}
        wrong = bool(options.get("user") or options.get("role") or (options.get("type") or "") not in allowed)
        seen.extend([options] if wrong else [])
        return wrong

    setters = _setters(spec, bad)
    if not setters:
        return None
    types = sorted({options.get("type") or "" for options in seen} - set(allowed))
    details = [f"type{'s' if len(types) > 1 else ''} {_quoted(types)}"] if types else []
    details += [f"{name} may not be set" for name in ("user", "role") if any(selinux.get(name) for selinux in seen)]
    return Breach("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}")


def _seccomp_of(security: Raw) -> str | None:
    profile = security.get("seccompProfile")
    return None if profile is None else profile.get("type") or ""


def _seccomp(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    def bad(security: Raw) -> bool:
        return _seccomp_of(security) not in (None, *_PROFILES)

    setters = _setters(spec, bad)
    if not setters:
        return None
    owners = [_security(spec), *(_security(container) for container in _containers(spec))]
    kinds = sorted({_seccomp_of(owner) or "" for owner in owners if bad(owner)})
    detail = f"{setters} must not set securityContext.seccompProfile.type to {_quoted(kinds)}"
    return Breach("seccompProfile", detail)


def _sysctls(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    safe = {name for versions, name in _SYSCTLS if version in versions}
    names = [sysctl.get("name") or "" for sysctl in _security(spec).get("sysctls") or ()]
    bad = [name for name in names if name not in safe]
    return Breach("forbidden sysctls", ", ".join(bad)) if bad else None


def _host_process(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    setters = _setters(spec, lambda context: bool((context.get("windowsOptions") or {}).get("hostProcess")))
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Breach("hostProcess", detail) if setters else None


def _escalation(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    names = _names(spec, lambda container: _security(container).get("allowPrivilegeEscalation") is not False)
    if not names or _windows(spec, version):
        return None
    detail = f"{_named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return Breach("allowPrivilegeEscalation != false", detail)


def _capabilities_restricted(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    if version not in CAPABILITIES_RESTRICTED or _windows(spec, version):
        return None

    def keeps(container: Raw) -> bool:
        return "ALL" not in ((_security(container).get("capabilities") or {}).get("drop") or ())

    details = []
    if names := _names(spec, keeps):
        details.append(f'{_named(names)} must set securityContext.capabilities.drop=["ALL"]')
    if names := _names(spec, lambda container: bool(set(_added(container)) - {"NET_BIND_SERVICE"})):
        more = sorted({name for container in _containers(spec) for name in _added(container)} - {"NET_BIND_SERVICE"})
        details.append(f"{_named(names)} must not include {_quoted(more)} in securityContext.capabilities.add")
    return Breach("unrestricted capabilities", "; ".join(details)) if details else None


def _volumes(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    # A volume that names no kind becomes an emptyDir.
    volumes = [
        volume for volume in spec.get("volumes") or () if set(volume) - {"name"} and not set(volume) & set(_VOLUMES)
    ]
    if not volumes:
        return None
    names = [volume["name"] for volume in volumes]
    kinds = sorted({next(key for key in volume if key != "name") for volume in volumes})
    what = f"restricted volume type{'s' if len(kinds) > 1 else ''}"
    return Breach("restricted volume types", f"{_named(names, 'volume')} {_use(names)} {what} {_quoted(kinds)}")


def _non_root(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    if _own_users(spec, version):
        return None
    setters = _setters(spec, lambda context: context.get("runAsNonRoot") is False)
    if setters:
        return Breach("runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false")
    names = _names(spec, lambda container: _security(container).get("runAsNonRoot") is None)
    if not names or _security(spec).get("runAsNonRoot"):
        return None
    return Breach("runAsNonRoot != true", f"pod or {_named(names)} must set securityContext.runAsNonRoot=true")


def _user(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    setters = _setters(spec, lambda context: context.get("runAsUser") == 0)
    if not setters or version not in USERS_RESTRICTED or _own_users(spec, version):
        return None
    return Breach("runAsUser=0", f"{setters} must not set runAsUser=0")


def _seccomp_restricted(pod: Raw, spec: Raw, version: Release) -> Breach | None:
    if _windows(spec, version):
        return None
    wrong = _seccomp(pod, spec, version)
    names = _names(spec, lambda container: _seccomp_of(_security(container)) is None)
    if wrong or not names or _seccomp_of(_security(spec)) is not None:
        return wrong
    detail = f'pod or {_named(names)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Breach("seccompProfile", detail)


Check = Callable[[Raw, Raw, Release], Breach | None]

_BASELINE: Final[tuple[Check, ...]] = (
    *(_apparmor, _capabilities, _host_namespaces, _host_paths, _host_ports, _host_probes, _privileged),
    *(_proc_mount, _selinux, _seccomp, _sysctls, _host_process),
)
_RESTRICTED: Final[tuple[Check, ...]] = (
    *(_escalation, _capabilities_restricted, _proc_mount_restricted, _volumes, _non_root, _user),
    _seccomp_restricted,
)
