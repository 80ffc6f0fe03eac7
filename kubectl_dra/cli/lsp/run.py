"""What ``lsp`` does: learn what to check for, then answer the editor until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubectl_dra.cli.lint.run import job_for
from kubectl_dra.cli.lsp import LspFlags
from kubectl_dra.errors import UsageError
from kubectl_dra.text import WITH_EXTRAS

if TYPE_CHECKING:
    from kubectl_dra.cli.options import ConnectionFlags


def run(flags: LspFlags, connection: ConnectionFlags) -> int:
    """Serves standard input and output until the editor ends it; returns the exit code.

    Raises:
        DraError: wrong usage, a missing package, a file that cannot be read, a cluster that does not answer.
    """
    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError:
        raise UsageError(f"lsp needs pygls, which is not installed: {WITH_EXTRAS}") from None
    from kubectl_dra.lsp.server import serve

    job, _ = job_for(flags.as_lint(), connection)
    serve(job)
    return 0
