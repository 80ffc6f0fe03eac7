"""Building blocks for the claims in the rules' examples."""

from __future__ import annotations

from typing import Final

_CLAIM: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: %s
"""


def claim(*lines: str, device_class: str = "gpu.example.com") -> str:
    """A claim with one request, with additional lines in the request."""
    return _CLAIM % device_class + "".join(f"        {line}\n" for line in lines)


def selecting(expression: str, device_class: str = "gpu.nvidia.com") -> str:
    """A claim for one device chosen by a selector."""
    return claim("selectors:", "- cel:", f"    expression: '{expression}'", device_class=device_class)
