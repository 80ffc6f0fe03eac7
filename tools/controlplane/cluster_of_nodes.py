"""A cluster to try things on: a control plane, nodes with a driver, and a class. It ends with Ctrl-C.

    make node                                        # one node, Kubernetes 1.36
    make node KUBERNETES=1.37 NODES=3
    python -m tools.controlplane.cluster_of_nodes --nodes 2 --gates ResourceHealthStatus=true

What the driver of a node does stands in a file that is printed; edit it, and the driver follows:

    {"pools": {"node-1": {"slices": [{"devices": [{"name": "gpu-0"}]}]}},
     "prepare": {"error": "no CDI specification"}, "unprepare": {"hang": true},
     "health": {"gpu-0": {"status": "Unhealthy", "message": "Xid 79"}}}
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path

from tools.controlplane.node import nodes
from tools.controlplane.objects import RESOURCE_API, cel_selectors, device, resource_object
from tools.controlplane.plane import own_plane
from tools.controlplane.program import VERSION_VARIABLE, Unavailable, find_node, find_program

DRIVER = "gpu.example.com"


def main() -> None:
    """Start it, say how to reach it, and wait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubernetes", metavar="MINOR", help="a minor version of Kubernetes, such as 1.37")
    parser.add_argument("--nodes", type=int, default=1, metavar="N", help="how many nodes")
    parser.add_argument("--devices", type=int, default=4, metavar="N", help="how many devices each has")
    parser.add_argument("--gates", default="", metavar="A=true", help="feature gates of every component")
    chosen = parser.parse_args()
    if chosen.kubernetes:
        os.environ[VERSION_VARIABLE] = chosen.kubernetes

    def announce(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    try:
        program, binary = find_program(announce), find_node(announce)
    except (Unavailable, ValueError) as error:
        sys.exit(str(error))
    gates = [f"--feature-gates={chosen.gates}"] if chosen.gates else []
    with (
        tempfile.TemporaryDirectory() as directory,
        own_plane(program, ["--profile=full", *gates], Path(directory)) as plane,
        nodes(plane, binary) as machines,
    ):
        selectors = cel_selectors([f'device.driver == "{DRIVER}"'])
        plane.api().create(resource_object("DeviceClass", DRIVER, {"selectors": selectors}))
        for number in range(1, chosen.nodes + 1):
            node = machines.node(f"node-{number}", gates=chosen.gates)
            driver = node.driver(DRIVER)
            driver.publish([device(f"gpu-{index}") for index in range(chosen.devices)])
            print(f"{node.name}: edit {driver.behaviour} to change what its driver does", flush=True)
        print(f"class {DRIVER} of {RESOURCE_API} takes its devices\n\nexport KUBECONFIG={plane.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
