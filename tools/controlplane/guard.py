"""A process that ends others when this one is gone, however it went.

Handlers and `finally` do not run after SIGKILL. A shell that reads from a pipe does not depend on them: the kernel
closes our end.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

# The second attempt is for processes that were still writing while they died.
_SCRIPT = """
while read -r one; do all="$all $one"; done
[ -z "$all" ] || kill -s KILL -- $all
rm -rf "$0" || { sleep 1; rm -rf "$0"; }
"""


@contextmanager
def guard(directory: Path) -> Iterator[Callable[[int], None]]:
    """Within the block: should this process be killed, kill what it watches and remove `directory`.

    The value of the block adds a process id, or the negative id of a process group. After the block has ended in any
    other way, nothing is killed or removed.
    """
    shell = subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pipe = shell.stdin
    assert pipe is not None

    def watch(target: int) -> None:
        pipe.write(f"{target}\n".encode())
        pipe.flush()

    try:
        yield watch
    finally:
        shell.kill()
        shell.wait()
        pipe.close()
