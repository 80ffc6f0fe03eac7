"""Keys of quotas that mean something of dynamic resource allocation, and are written otherwise."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kubectl_dra.api.schema import FieldPath
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.lint.finding import Fix
from kubectl_dra.manifests.changes import Rename, fields_at

_COUNTED: Final = ("resourceclaims", "resourceclaimtemplates")
_BY_REQUESTS: Final = "quotas count extended resources by requests"


class KeyProblem(Struct, frozen=True):
    """Why a key counts nothing, and the key that is meant; empty if that is not known."""

    why: str
    meant: str = ""


def key_problem(key: str) -> KeyProblem | None:
    """Why a quota key counts nothing; None for a key that counts or does not concern DRA."""
    devices = ".deviceclass.resource.k8s.io/devices"
    if key.endswith(devices):
        return None
    prefix, slash, name = key.partition("/")
    plural = prefix.removesuffix(".resource.k8s.io")
    if not slash and (name := key.removeprefix("requests.").removeprefix("limits.")) in catalogue().classes:
        return KeyProblem(f"the devices of a class are counted by CLASS{devices}", f"{name}{devices}")
    if not slash and plural in _COUNTED:
        return KeyProblem("objects are counted by count/", f"count/{plural}.resource.k8s.io")
    if prefix == "count":
        for plural in _COUNTED:
            if name == plural or (name.startswith(f"{plural}.") and name != f"{plural}.resource.k8s.io"):
                return KeyProblem(f"{plural} are in the group resource.k8s.io", f"count/{plural}.resource.k8s.io")
        if name in ("deviceclasses.resource.k8s.io", "resourceslices.resource.k8s.io"):
            return KeyProblem("a quota applies to a namespace, and these objects have none")
        return None
    if prefix == "limits.deviceclass.resource.kubernetes.io":
        return KeyProblem(_BY_REQUESTS, f"requests.deviceclass.resource.kubernetes.io/{name}")
    if prefix == "deviceclass.resource.kubernetes.io":
        return KeyProblem("the key of an extended resource begins with requests.", f"requests.{key}")
    if prefix.startswith("limits.") and "." in prefix.removeprefix("limits.") and "kubernetes.io" not in prefix:
        return KeyProblem(_BY_REQUESTS, f"requests.{key.removeprefix('limits.')}")
    if prefix.endswith(("resource.k8s.io", "resource.kubernetes.io")) and not prefix.startswith("requests."):
        owner = prefix.removesuffix(".resource.k8s.io").removesuffix(".resource.kubernetes.io")
        owner = owner.removesuffix(".deviceclass").removesuffix(".deviceclasses")
        if owner and owner != prefix and owner not in ("deviceclass", *_COUNTED):
            return KeyProblem(f"the devices of a class are counted by CLASS{devices}", f"{owner}{devices}")
        return KeyProblem("it is not a key of dynamic resource allocation")
    return None


def key_fix(quota: Any, path: FieldPath) -> Fix | None:
    """To write the key that is meant by the one at a path; None if that is not known."""
    problem = key_problem(str(path[-1]))
    if problem is None or not problem.meant:
        return None
    changes = (Rename(path, problem.meant),) if problem.meant not in fields_at(quota, *path[:-1]) else ()
    return Fix(f"Write {problem.meant}", changes, "unsafe" if changes else "none")
