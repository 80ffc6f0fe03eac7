"""Which names and values identify a cluster: the rules that decide what anonymizing replaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_dra.api.limits import MAX_LABEL
from kubectl_dra.api.neighbour_kinds import KNOWN_SCHEDULERS, NAMING, NEIGHBOUR_KINDS
from kubectl_dra.api.plugins import named_like_plugin
from kubectl_dra.cel.lexer import LexicalError, string_value, tokenize
from kubectl_dra.cluster.pseudonyms import Pseudonyms, is_amount, is_harmless
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.text import whole_number

Json = dict[str, Any]

KEPT_NAMESPACES: Final = frozenset(("default", "kube-system", "kube-public", "kube-node-lease"))
_KEPT_LABELS: Final = frozenset(
    ("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch")
)
_HARDWARE: Final = ("nvidia.com", "amd.com", "intel.com", "habana.ai", "feature.node.kubernetes.io")
"""Domains of labels that describe hardware: words in their values are replaced one by one."""
_PLAIN_VALUE: Final = re.compile(r"|true|false|-?[0-9]{1,9}")
_SERIAL: Final = re.compile(
    r"uuid|guid|serial|^mac$|macaddr|hostname|^host$|nodename|^ip$|ipv[46]|ipaddr|wwn|asset|rack|location|tenant|"
    r"customer|project|owner|^user|email",
    re.IGNORECASE,
)
_SEVERAL: Final = "__"
"""Between the zones of a volume that is in several."""
_LONG: Final = 10**5
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_CLASS_QUOTA: Final = ".deviceclass.resource.k8s.io/devices"
_AMOUNT: Final = re.compile(r"""["'][+-]?[0-9.]+(?:[eE][+-]?\d+|[KMGTPE]i?|[mnuk])?["']""")
_COMMENT: Final = re.compile(r"//[^\n]*")


class Identities:
    """Decides per kind of name whether it stays. The first pass collects; once ``names`` are frozen, the
    second replaces.
    """

    def __init__(self, drivers: Iterable[str], seed: str) -> None:
        """``drivers`` are those that publish devices."""
        self.names = Pseudonyms(seed)
        self._drivers = frozenset(drivers)
        for driver in self._drivers:
            self.driver(driver)
        self._is_serial: dict[str, bool] = {}
        self._serials: set[str] = set()
        self._long_serials: set[int] = set()

    def name(self, category: str, name: str) -> str:
        """An object's name. Namespaces that every cluster has and classes of drivers keep theirs."""
        if category == "namespace":
            return self.namespace(name)
        if category == "class":
            return self.device_class(name)
        if category == "csidriver":
            return self.storage_driver(name)
        if category == "owner":
            return self.owner(name)
        if category == "configmap":
            # Only these are read, and by their names.
            known = (end for end in NEIGHBOUR_KINDS["ConfigMap"].only if name.endswith(end))
            return next(known, "") or self.names.of(category, name)
        return self.names.of(category, name)

    def namespace(self, name: str) -> str:
        """A namespace's name."""
        return name if name in KEPT_NAMESPACES else self.names.of("namespace", name)

    def device_class(self, name: str) -> str:
        """A DeviceClass's name: those of known drivers stay."""
        return name if "." in name and is_harmless(name) else self.names.of("class", name)

    def driver(self, name: str) -> str:
        """A driver's name."""
        return name if is_harmless(name) else self.names.of("driver", name)

    def is_driver(self, name: str) -> bool:
        """Whether it is the name of a driver, in our data or because it publishes devices."""
        return name in self._drivers or catalogue().driver(name) is not None

    def owner(self, name: str) -> str:
        """The name of what pods belong to; that of a driver's DaemonSet goes on telling this."""
        return self.names.of("kubelet-plugin" if named_like_plugin(name) else "owner", name)

    def container(self, name: str) -> str:
        """The name of a container: those that serve devices in the pods of known drivers stay."""
        if any(name == look.container for look in catalogue().looks):
            self.names.gave(name)
            return name
        return self.names.of("container", name)

    def device(self, name: str) -> str:
        """The name of a device, which keeps its form."""
        return self.names.of("device", name)

    def storage_driver(self, name: str) -> str:
        """The name of a CSI driver."""
        return name if is_harmless(name) else self.names.of("csidriver", name)

    def settled(self) -> None:
        """End the collecting pass."""
        self.names.freeze()
        # Pools are visited by driver.
        self.names.between("driver", filter(is_harmless, self._drivers), ".example.com")
        self.names.settle("pool", self.names.embedded)
        self.names.settle("device", self._device, ordered=False)

    def plain(self, category: str, name: str) -> str:
        """A name that may stay if it is nothing but known words, such as ``gpu``."""
        looks_given = re.fullmatch(rf"{category}-\d+", name) is not None
        return name if is_harmless(name) and not looks_given else self.names.of(category, name)

    def request(self, name: str) -> str:
        """The name of a request, or of a request and one of its subrequests."""
        return "/".join(self.plain("request", part) for part in name.split("/"))

    def identifier(self, name: str) -> str:
        """The name of an attribute, a capacity, a counter or a variable, without its domain."""
        return self.names.embedded(name)

    def qualified(self, name: str) -> str:
        """The name of an attribute or a capacity, with its domain if it has one."""
        domain, slash, rest = name.rpartition("/")
        return f"{self.literal(domain)}{slash}{self.identifier(rest)}"

    def scheduler(self, name: str) -> str:
        """A scheduler's name."""
        return name if name in KNOWN_SCHEDULERS else self.names.of("scheduler", name)

    def key(self, key: str) -> str:
        """The key of a label, taint, finalizer or gate."""
        return key if "/" in key and is_harmless(key) else self.names.of("key", key)

    def value(self, key: str, value: Any) -> Any:
        """The value of a label or taint."""
        if not isinstance(value, str) or _PLAIN_VALUE.fullmatch(value) or key in _KEPT_LABELS:
            return value
        domain, slash, _ = key.partition("/")
        if slash and any(domain == known or domain.endswith(f".{known}") for known in _HARDWARE):
            return self.names.embedded(value)
        if _SEVERAL in value:
            return _SEVERAL.join(self.value(key, part) for part in value.split(_SEVERAL))
        other = self.names.of("value", value)
        return self.names.known("node", value) or other

    def labels(self, labels: Mapping[str, Any] | None) -> Json:
        """Labels or a pod's node selector."""
        plain = {key: value for key, value in (labels or {}).items() if key not in NAMING}
        return {self.key(key): self.value(key, value) for key, value in plain.items()} | self.naming(labels or {})

    def naming(self, given: Mapping[str, Any]) -> Json:
        """Those of labels or annotations that name an object of another layer: the object's new name."""
        out: Json = {}
        for key in given.keys() & NAMING.keys():
            self.names.gave(key)
            value, category = str(given[key]), NAMING[key]
            out[key] = self.names.scrambled(value) if category == "uid" else self.name(category, value)
        return out

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
        if is_harmless(name) and (not slash or "." in domain or domain == "count"):
            return name
        other = self.names.of("resource", name)
        return f"example.com/{other}" if slash else other

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
                return [change(item) for item in value]
            if isinstance(value, str):
                if serial and not self.names.frozen:
                    self._serials.add(value)
                return self.literal(value)
            if serial and isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LONG:
                self._long_serials.add(value)
                return int(self.names.scrambled(str(value)))
            return value

        return {self.identifier(kind): change(value) for kind, value in raw.items()}

    def literal(self, value: str) -> str:
        """A text that is an attribute's value or is compared with one by a selector."""
        if not self.names.frozen:
            return value
        if value in self._serials and not self.names.has_uuid(value):
            return self.names.scrambled(value)
        return self.names.known("driver", value) or self.names.embedded(value)

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
        before = ("", "")
        for token in tokens:
            out.append(_COMMENT.sub("", text[end : token.start]))
            end = token.end
            if token.kind == "STRING":
                out.append(
                    token.text
                    if before == ("quantity", "(") and _AMOUNT.fullmatch(token.text)
                    else self._string(token.text)
                )
            elif token.kind in ("IDENTIFIER", "BYTES"):
                out.append(self.identifier(token.text))
            elif token.kind == "NUM_INT" and whole_number(token.text, 20) in self._long_serials:
                out.append(self.names.scrambled(token.text))
            elif token.text != "<EOF>":
                out.append(token.text)
            before = (before[1], token.text)
        changed = "".join(out).strip()
        self.names.gave(changed)
        return changed

    def _device(self, name: str) -> str:
        other = self.names.embedded(name)
        return other if len(other) <= max(len(name), MAX_LABEL) else self.names.scrambled(name)

    def checked(self, value: Any) -> Any:
        """What an object became, with every text in it replaced that is neither made nor known to be harmless."""
        if isinstance(value, str):
            known = not value or self.names.is_made(value) or is_amount(value) or is_harmless(value)
            return value if known or value in KEPT_NAMESPACES else self.names.embedded(value)
        if isinstance(value, Mapping):
            return {self.checked(key): self.checked(below) for key, below in value.items()}
        return [self.checked(below) for below in value] if isinstance(value, list) else value

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
