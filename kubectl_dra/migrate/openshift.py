"""OpenShift Templates, whose objects are handled like others, except that a parameter is neither a number nor
a name.

A quantity or name such as ``${GPUS}`` is refused where it matters; elsewhere in an object it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubectl_dra.manifests.documents import Document
from kubectl_dra.manifests.objects import ManifestObject, is_object
from kubectl_dra.manifests.workloads import Key, key_of

TEMPLATE: Final[Key] = ("template.openshift.io", "Template")
TEMPLATE_OBJECTS: Final = "objects"


def in_template(document: Document) -> Iterator[ManifestObject]:
    """The objects of such a template; none for any other document."""
    if not is_object(document.object) or key_of(document.object) != TEMPLATE:
        return
    found = document.object.get(TEMPLATE_OBJECTS)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if is_object(item):
            yield ManifestObject(item, document, (TEMPLATE_OBJECTS, index))
