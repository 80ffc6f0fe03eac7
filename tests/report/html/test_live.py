"""The pages of a real cluster, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import accessibility, opened, overflow
from tests.report.html.support import Dra
from tools.controlplane.cluster import Cluster
from tools.controlplane.objects import device, request

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")
MARKUP = "</script><img src=x onerror='window.hurt=1'>"


def test_explain_and_devices(browser: Browser, cluster: Cluster, dra: Dra, tmp_path: Path) -> None:
    node, gpu = cluster.node(), cluster.device_class()
    cluster.publish([device(f"gpu-{at}", {"productName": MARKUP}) for at in range(3)], pool="gpus", node=node)
    cluster.pod("runs", claims={"gpu": cluster.claim([request(gpu)], "runs")})
    assert cluster.scheduled("runs").devices("gpu") == ["gpus/gpu-0"]
    wanted = request(gpu, count=3, selectors=[f'device.attributes["{cluster.driver}"].productName == "{MARKUP}"'])
    cluster.pod("waits", claims={"gpu": cluster.claim([wanted], "waits")})
    cluster.unschedulable("waits")
    connection = ["--kubeconfig", str(cluster.plane.kubeconfig), "--context", "admin", "-o", "html"]
    explained = dra("explain", "pod/waits", "-n", cluster.namespace, "--node", node, *connection)
    listed = dra("devices", "--driver", cluster.driver, *connection)
    assert (explained.code, listed.code) == (1, 0)
    for name, source in (("explain", explained.out), ("devices", listed.out)):
        (tmp_path / f"{name}.html").write_text(source)
        page, complaints = opened(browser, (tmp_path / f"{name}.html").as_uri(), 390)
        assert page.locator(".grid .c").count() == 3
        assert page.locator(".grid .c[data-s=held]").count() == 1
        assert f"{cluster.namespace}/runs" in page.content()
        assert (page.locator("img").count(), page.evaluate("window.hurt")) == (0, None)
        assert accessibility(page) == [] and overflow(page) <= 0
        if name == "explain":
            assert "cannot be scheduled" in page.locator("h1").inner_text()
            assert MARKUP in page.locator("main").inner_text()
            assert "cannot allocate all claims" in page.locator("main").inner_text()
        assert complaints == []
