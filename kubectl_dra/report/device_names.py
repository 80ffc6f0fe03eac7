"""Names of devices on little room."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_NUMBERED: Final = re.compile(r"(|.*[^0-9])(0|[1-9][0-9]*)")


def compressed(names: Sequence[str]) -> str:
    """``gpu-0``, ``gpu-0..2,5``, or the first of several names that differ in more than a number."""
    found = [match for name in names if (match := _NUMBERED.fullmatch(name))]
    if len(names) == 1 or len(found) < len(names) or len({match[1] for match in found}) > 1:
        return names[0] + (" ..." if len(names) > 1 else "")
    runs: list[list[int]] = []
    for number in sorted(int(match[2]) for match in found):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]}..{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return found[0][1] + ",".join(shown)
