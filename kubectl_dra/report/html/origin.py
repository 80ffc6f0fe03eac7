"""When and from what a page was made: who finds it in a ticket years later wants to know."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kubectl_dra.report.html.markup import Markup, join, tag
from kubectl_dra.text import DOCS, some


class PageOrigin(NamedTuple):
    """The time (UTC), the live cluster (address and, if the kubeconfig names it, context) or else the files, and the
    release of Kubernetes that is assumed.
    """

    made: datetime
    server: str
    context: str
    files: tuple[str, ...]
    release: str


def origin_html(origin: PageOrigin) -> Markup:
    """One line at the top of a page."""
    from kubectl_dra import __version__

    moment = tag("time", f"{origin.made:%Y-%m-%d %H:%M} UTC", datetime=f"{origin.made:%Y-%m-%dT%H:%M:%SZ}")
    parts: list[Markup | str] = ["Made ", moment]
    if origin.server:
        parts += [" from ", f"context {origin.context}, " if origin.context else "", origin.server]
    elif origin.files:
        parts += [" from ", some(origin.files)]
    parts += [f" · Kubernetes {origin.release} · kubectl-dra {__version__} · "]
    parts += [tag("a", "documentation", href=f"{DOCS}/index.md", rel="noreferrer")]
    return tag("p", join(parts), class_="quiet origin")
