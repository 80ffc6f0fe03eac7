from __future__ import annotations

import pytest

from kubectl_dra.api.codec import canonical_time


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T01:30:00+01:30", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.999999Z", "2026-01-01T00:00:00Z"),
        ("not a time", "not a time"),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00"),
    ],
)
def test_canonical_time(text: str, canonical: str) -> None:
    assert canonical_time(text) == canonical
