"""What ``lsp`` does: learn what to check for, then answer the editor until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from kubectl_dra.cli.flags import LspFlags
from kubectl_dra.cli.lint import LintFlags
from kubectl_dra.cli.lint.run import job_for
from kubectl_dra.cli.usage_errors import missing_package

if TYPE_CHECKING:
    from kubectl_dra.cli.options import ConnectionFlags


def run(flags: LspFlags, connection: ConnectionFlags) -> int:
    """Serves standard input and output until the editor ends it; returns the exit code."""
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError:
        raise missing_package("lsp", "pygls") from None
    from kubectl_dra.lsp.server import serve

    job, _ = job_for(LintFlags(**asdict(flags)), connection)
    serve(job)
    return 0
