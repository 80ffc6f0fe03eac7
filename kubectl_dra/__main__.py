"""Entry point: ``kubectl dra`` and ``python -m kubectl_dra``."""

from __future__ import annotations

import sys

# All else is imported where Ctrl-C is caught.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_AGAIN_SECONDS = (0.001, 0.05)
"""After how long, and then how often."""


_ENDS = ("SIGTERM", "SIGHUP")


def _end(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def main() -> None:
    """Runs the command line and exits with its code; errors become one sentence on stderr."""
    try:
        import signal

        # What is being written is then tidied up as after Ctrl-C.
        for number in [getattr(signal, name) for name in _ENDS if hasattr(signal, name)]:
            # What a parent ignores, such as nohup's SIGHUP, stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _end)
        sys.unraisablehook = _unraisable
        _main()
    except KeyboardInterrupt:
        # While modules are imported; later the command line itself takes care of it.
        sys.exit(130)


def _unraisable(lost: Any) -> None:
    """Ends the program a moment later where the end came in a callback, such as a weak reference's of importlib.

    Python can raise nothing there: it would print the exception and go on.
    """
    import signal

    end = lost.exc_value
    if not isinstance(end, SystemExit | KeyboardInterrupt) or not hasattr(signal, "setitimer"):
        sys.__unraisablehook__(lost)
        return
    if sys.is_finalizing():
        return

    def again(_: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is _unraisable.__code__:
            # Still in the hook, where it would be lost once more.
            return
        # Once: a second one would break off what tidies up.
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise end

    # More than once: a signal that comes just before a long wait is only looked at after it.
    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, *_AGAIN_SECONDS)


def _main() -> None:
    from contextlib import suppress

    from kubectl_dra import process

    process.begin()
    if sys.argv[1:2] == ["__complete"]:
        from kubectl_dra.cli.completion.answer import answer

        answer(sys.argv[2:])
    if sys.argv[1:] == ["--version"]:
        from kubectl_dra import __version__
        from kubectl_dra.safe_output import put

        # Where nothing can be written the command line knows what to say.
        with suppress(OSError, AttributeError):
            put(f"kubectl-dra {__version__}\n")
            sys.stdout.flush()
            sys.exit(0)
    from kubectl_dra.cli.main import run

    process.end(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
