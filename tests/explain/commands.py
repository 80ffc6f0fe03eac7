"""Answers without the commands in them, which name the file or the connection that was asked."""

from __future__ import annotations

from typing import Any


def without_commands(answer: Any) -> Any:
    """A JSON report, or a part of one, without its commands and its next step."""
    if isinstance(answer, list):
        return [without_commands(item) for item in answer]
    if isinstance(answer, dict):
        return {
            key: without_commands(value) for key, value in answer.items() if key not in ("commands", "tryWith", "next")
        }
    return answer
