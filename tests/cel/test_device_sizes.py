from __future__ import annotations

import pytest

from kubectl_dra.cel.known_sizes import Size, device_sizes


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("device",), Size(0, 0)),
        (("device", "driver"), Size(0, 63)),
        (("device", "allowMultipleAllocations"), Size(0, 1)),
        (("device", "attributes"), Size(0, 32)),
        (("device", "attributes", "@keys"), Size(0, 63)),
        (("device", "attributes", "@values"), Size(0, 32)),
        (("device", "attributes", "@values", "@keys"), Size(0, 32)),
        (("device", "attributes", "@values", "model"), Size(0, 64)),
        (("device", "attributes", "@values", "@values"), Size(0, 64)),
        (("device", "attributes", "@values", "model", "@items"), None),
        (("device", "attributes", "domain"), None),
        (("device", "capacity", "@values"), Size(0, 32)),
        (("device", "capacity", "@values", "memory"), None),
        (("device", "capacity", "@values", "@values"), Size(0, 0)),
        (("other",), None),
        ((), None),
    ],
)
def test_assumed_sizes(path: tuple[str, ...], expected: Size | None) -> None:
    assert device_sizes(path) == expected
