"""The screen on a real cluster: it follows what happens, and takes a device out of service and back."""

from __future__ import annotations

import sys
import time

from tests.taint.live.team import Team
from tests.terminal import Terminal


def test_a_device_out_of_service_and_back(team: Team) -> None:
    command = [sys.executable, "-m", "kubectl_dra", "ui", "--kubeconfig", str(team.cluster.plane.kubeconfig)]
    with Terminal([*command, "-n", team.cluster.namespace], columns=160) as terminal:
        terminal.until(r"3 Claims 0.*live \d\d:\d\d")
        held = team.running("one")
        # Nobody has pressed a key: the watches saw the claim.
        terminal.until("3 Claims 1")
        terminal.type("4/")
        # What is typed goes to a question as soon as it is there, which the screen does not tell.
        time.sleep(1)
        terminal.type(f"={held} {team.cluster.driver}\r")
        terminal.until(f"1 of 1 +filter: ={held}")
        terminal.type("t")
        terminal.until("Taint .*maintenance:NoSchedule")
        time.sleep(0.5)
        terminal.type("\r")
        terminal.until("Reason")
        time.sleep(0.5)
        terminal.type("\r")
        terminal.until("Write it\\? y: yes")
        assert team.rules() == []
        terminal.type("y")
        terminal.until("Done. Esc: back")
        assert len(team.rules()) == 1
        terminal.type("\x1b")
        terminal.until("Back into service.*Enter open")
        terminal.type("u")
        terminal.until("Take these taints back\\? y: yes")
        terminal.type("y")
        terminal.until("back\\?.*Done. Esc: back")
        assert team.rules() == []
        terminal.type("q")
        assert terminal.end() == 0
