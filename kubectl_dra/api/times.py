"""Times as the API writes them: RFC 3339 text."""

from __future__ import annotations

from datetime import UTC, datetime


def parse(text: str) -> datetime | None:
    """A time of the API, or None if invalid."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else None


def stamp(time: datetime) -> str:
    """The time as the API writes it, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
