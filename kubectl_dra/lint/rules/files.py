"""Problems of files rather than objects. The engine finds them; this module documents them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.lint.context import Context
from kubectl_dra.lint.finding import LintFinding
from kubectl_dra.lint.rule import Rule

_GOOD: Final = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: gpu.example.com
"""


class FileRule(Rule):
    """A rule about a whole file."""

    kinds = ()
    good = _GOOD

    def check(self, context: Context) -> Iterator[LintFinding]:
        return iter(())


class Unreadable(FileRule):
    """Text that is not a manifest."""

    code = "DRA901"
    name = "unreadable-manifest"
    severity = "error"
    why = (
        "kubectl cannot read the document: it is not YAML or JSON, not text, not an object, a List with an item that "
        "is not an object, nested too deeply, or so full of aliases that it would expand to millions of values. The "
        "file's other documents are checked as far as they can be told apart."
    )
    bad = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata:\n\tname: gpu.example.com\n"


class DuplicateKey(FileRule):
    """A duplicate key."""

    code = "DRA902"
    name = "duplicate-key"
    severity = "warning"
    why = (
        "A mapping has the same key twice. kubectl silently takes the last one; kustomize and other tools refuse the "
        "file or take the first one."
    )
    bad = f"{_GOOD}metadata:\n  name: other.example.com\n"


class UnusedSuppression(FileRule):
    """A comment that silences nothing."""

    code = "DRA903"
    name = "unused-suppression"
    severity = "warning"
    why = (
        "The comment asks to ignore a finding that does not exist: it was fixed, or the comment is on another line. "
        "Left in place, it would hide the next mistake."
    )
    bad = f"# kubectl-dra: ignore[DRA101] not any more\n{_GOOD}"


class BadSuppression(FileRule):
    """A comment that cannot be understood."""

    code = "DRA904"
    name = "malformed-suppression"
    severity = "warning"
    why = "A comment for kubectl-dra that it cannot read, or that names a rule that does not exist, ignores nothing."
    bad = f"# kubectl-dra: ignore DRA101\n{_GOOD}"


class TooLarge(FileRule):
    """A file that is too large to check."""

    code = "DRA905"
    name = "file-too-large"
    severity = "error"
    why = (
        "The file is larger than anything the API server would accept, so it is not read: an object has at most "
        "about 1.5 MB, and checking far more at once would take minutes and gigabytes."
    )
    bad = "# a YAML document of more than 10 MB, a YAML file of more than 32 MB, or a file of more than 64 MB\n"


class Unavailable(FileRule):
    """A file or directory that cannot be read."""

    code = "DRA906"
    name = "file-not-readable"
    severity = "error"
    why = "The file or directory exists but cannot be read, or it changed while it was being read. It is not checked."
    bad = "# a file without read permission\n"


RULES: Final[tuple[type[Rule], ...]] = (
    Unreadable,
    DuplicateKey,
    UnusedSuppression,
    BadSuppression,
    TooLarge,
    Unavailable,
)
