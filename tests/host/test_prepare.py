"""Story: `node prepare` loads a release's images into a real containerd, and unpacks none of them."""

from __future__ import annotations

import time

import pytest

from hack.real_host.iso import IMAGES, LAYER_MIB
from hack.real_host.machine import Machine
from tests.support.host.node import Node
from upgrade_manager.toolkit.host.host_paths import AGENT_IMAGES, CONTAINERD, RKE2_IMAGES

pytestmark = [pytest.mark.host("guest", "control-plane", "toolkit"), pytest.mark.timeout(3600)]

CTR = ("ctr", "--address", "/run/k3s/containerd/containerd.sock", "--namespace", "k8s.io", "images", "list", "--quiet")
IMPORTED = {*IMAGES["common"], *IMAGES["rke2"]}


def used_mib(machine: Machine) -> int:
    machine.call("sync")
    return int(machine.call("du", "--summarize", "--block-size=1M", CONTAINERD).split()[0])


def test_images_are_imported_and_not_unpacked(node: Node) -> None:
    before, began = used_mib(node.machine), time.monotonic()
    ended = node.pods.run("prepare")
    assert (ended.status, ended.message) == (0, ""), ended.log
    figures = f"prepare took {time.monotonic() - began:.0f} s, containerd grew by {used_mib(node.machine) - before} MiB"
    (node.folder / "figures.txt").write_text(f"{figures}\n")
    assert set(node.machine.call(*CTR).split()) >= IMPORTED
    # A quarter of each layer cannot be compressed; unpacked, each would need all of it once more.
    assert LAYER_MIB * len(IMPORTED) // 4 <= used_mib(node.machine) - before < LAYER_MIB * len(IMPORTED)
    assert node.machine.call("ls", RKE2_IMAGES).split() == ["rke2.tar.zst", "rke2.txt"]
    assert node.machine.call("ls", AGENT_IMAGES).split() == ["agent.tar.zst", "agent.txt"]
    again = node.pods.run("prepare")
    assert again.status == 0, again.log
    assert "images import" not in again.log.replace('", "', " ")
