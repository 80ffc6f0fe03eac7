"""What runs on this machine, asked in the way that every `ps` understands."""

from __future__ import annotations

import subprocess


def children(pid: int) -> list[int]:
    """The ids of the processes that `pid` started and that have not been waited for."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True)
    pairs = (line.split() for line in listed.stdout.splitlines())
    return [int(child) for child, parent in pairs if int(parent) == pid]


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be waited for does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.lstrip().startswith("Z")
