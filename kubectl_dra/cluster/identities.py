"""Which names and values identify a cluster: the rules that decide what anonymizing replaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.cel.lexer import LexicalError, string_value, tokenize
from kubectl_dra.cluster.pseudonyms import Pseudonyms

Json = dict[str, Any]

KEPT_NAMESPACES: Final = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
_KEPT_SCHEDULER: Final = "default-scheduler"
_VENDORS = (
    "kubernetes.io k8s.io x-k8s.io nvidia.com amd.com intel.com habana.ai google.com gke.io amazonaws.com azure.com "
    "openshift.io dra.cpu dra.net dra.memory mellanox.com xilinx.com"
)
# Labels of these domains describe hardware: their values stay.
_HARDWARE: Final = ("nvidia.com", "amd.com", "intel.com", "habana.ai", "feature.node.kubernetes.io")
_KEPT_LABELS: Final = frozenset(
    ("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch")
)
_PLAIN_VALUE: Final = re.compile(r"|true|false|-?[0-9]{1,9}")
_SERIAL: Final = re.compile(
    r"uuid|guid|serial|^mac$|macaddr|hostname|^host$|nodename|^ip$|ipv[46]|ipaddr|wwn|asset|rack|location|tenant|"
    r"customer|project|owner|^user|email",
    re.IGNORECASE,
)
_LONG: Final = 10**5
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_CLASS_QUOTA: Final = ".deviceclass.resource.k8s.io/devices"
_COMMENT: Final = re.compile(r"//[^\n]*")


class Identities:
    """Decides per kind of name whether it stays. The first pass collects; once ``names`` are frozen, the
    second replaces.
    """

    def __init__(self, drivers: Iterable[str], seed: str) -> None:
        """``drivers`` are those that publish devices. Their names, and names derived from them, stay."""
        self.names = Pseudonyms(seed)
        self._drivers = frozenset(drivers)
        self._known: dict[str, bool] = {}
        self._is_serial: dict[str, bool] = {}
        self._serials: set[str] = set()
        self._long_serials: set[int] = set()

    def name(self, category: str, name: str) -> str:
        """An object's name. Namespaces that every cluster has and classes of drivers keep theirs."""
        if category == "namespace":
            return self.namespace(name)
        if category == "class":
            return self.device_class(name)
        return self.names.of(category, name)

    def namespace(self, name: str) -> str:
        """A namespace's name."""
        return name if name in KEPT_NAMESPACES else self.names.of("namespace", name)

    def device_class(self, name: str) -> str:
        """A DeviceClass's name."""
        return name if self.is_known(name) else self.names.of("class", name)

    def scheduler(self, name: str) -> str:
        """A scheduler's name."""
        return name if name == _KEPT_SCHEDULER else self.names.of("scheduler", name)

    def is_known(self, domain: str) -> bool:
        """Whether a domain belongs to a vendor, Kubernetes or a driver, and so reveals nothing about the cluster."""
        known = self._known.get(domain)
        if known is None:
            known = self._known[domain] = any(
                domain == other or domain.endswith(f".{other}") for other in (*_VENDORS.split(), *self._drivers)
            ) or any(driver.endswith(f".{domain}") for driver in self._drivers)
        return known

    def key(self, key: str) -> str:
        """The key of a label, taint, finalizer or gate."""
        domain, slash, _ = key.partition("/")
        return key if slash and self.is_known(domain) else self.names.of("key", key)

    def value(self, key: str, value: Any) -> Any:
        """The value of a label or taint."""
        if not isinstance(value, str) or _PLAIN_VALUE.fullmatch(value) or key in _KEPT_LABELS:
            return value
        domain, slash, _ = key.partition("/")
        if slash and any(domain == known or domain.endswith(f".{known}") for known in _HARDWARE):
            return self.names.embedded(value)
        other = self.names.of("value", value)
        return self.names.known("node", value) or other

    def labels(self, labels: Mapping[str, Any] | None) -> Json:
        """Labels or a pod's node selector."""
        return {self.key(key): self.value(key, value) for key, value in (labels or {}).items()}

    def resource(self, name: str) -> str:
        """The name of a resource of nodes, containers and quotas."""
        for prefix in ("requests.", "limits."):
            if name.startswith(prefix) and "/" in name:
                return prefix + self.resource(name.removeprefix(prefix))
        if name.startswith(_IMPLICIT):
            return _IMPLICIT + self.device_class(name.removeprefix(_IMPLICIT))
        if name.endswith(_CLASS_QUOTA):
            return self.device_class(name.removesuffix(_CLASS_QUOTA)) + _CLASS_QUOTA
        domain, slash, _ = name.partition("/")
        if not slash or domain == "count" or self.is_known(domain):
            return name
        return f"example.com/{self.names.of('resource', name)}"

    def resources(self, amounts: Mapping[str, Any] | None) -> Json:
        """Amounts by resource name."""
        return {self.resource(name): amount for name, amount in (amounts or {}).items()}

    def attribute(self, name: str, raw: Any) -> Any:
        """An attribute's value: replaced entirely for serial numbers and the like, otherwise only the
        identities in it.
        """
        serial = self._is_serial.get(name)
        if serial is None:
            serial = self._is_serial[name] = bool(_SERIAL.search(name.rpartition("/")[2]))
        if not raw or not (serial or self.names.frozen):
            return raw

        def change(value: Any) -> Any:
            if isinstance(value, list):
                return [change(entry) for entry in value]
            if isinstance(value, str):
                if serial and not self.names.frozen:
                    self._serials.add(value)
                return self.literal(value)
            if serial and isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LONG:
                self._long_serials.add(value)
                return int(self.names.scrambled(str(value)))
            return value

        return {kind: value if kind == "version" else change(value) for kind, value in raw.items()}

    def literal(self, value: str) -> str:
        """A text that is an attribute's value or is compared with one by a selector."""
        if not self.names.frozen or self.is_known(value):
            return value
        replaced = self.names.embedded(value)
        return self.names.scrambled(value) if value in self._serials and replaced == value else replaced

    def expression(self, text: str) -> str:
        """A CEL selector without comments, whose literals follow the replaced values."""
        if not self.names.frozen:
            return text
        try:
            tokens = tokenize(text)
        except LexicalError:
            return self.names.text(_COMMENT.sub("", text))
        out: list[str] = []
        end = 0
        for token in tokens:
            out.append(_COMMENT.sub("", text[end : token.start]))
            end = token.end
            if token.kind == "STRING":
                out.append(self._string(token.text))
            elif token.kind == "NUM_INT" and token.text.isdigit() and int(token.text) in self._long_serials:
                out.append(self.names.scrambled(token.text))
            elif token.text != "<EOF>":
                out.append(token.text)
        return "".join(out).strip()

    def _string(self, token: str) -> str:
        try:
            value = string_value(token)
        except ValueError:
            return token
        replaced = self.literal(value)
        if replaced == value:
            return token
        quoted = replaced.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{quoted}"'
