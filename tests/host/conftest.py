"""Fixtures of the tier `host`: a guest for each test, from one disk, and what it reaches outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hack.control_plane.control_plane import ControlPlane
from hack.real_host import iso, parts
from hack.real_host.guest import Template, guest, make_template
from hack.real_host.machine import Machine
from hack.real_host.node_cluster import NodeCluster
from hack.real_host.toolkit_pod import ToolkitPods
from tests.support import tiers
from tests.support.host.node import Node


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the test with the reason if one of its marker's parts is missing; fixtures come later."""
    names = [name for mark in item.iter_markers("host") for name in mark.args]
    if reason := parts.missing(parts.this_machine(), *names):
        pytest.skip(reason)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Make the disk of all tests, with elemental and kubectl if they are there."""
    found = parts.this_machine()
    elemental = None if parts.missing(found, "elemental") else parts.elemental(os.environ)
    kubectl = None
    if not parts.missing(found, "control-plane"):
        kubectl = tiers.assets().folder / "kubectl"
    return make_template(tmp_path_factory.mktemp("template"), elemental=elemental, kubectl=kubectl)


@pytest.fixture(scope="session")
def cluster(control_plane: ControlPlane) -> NodeCluster:
    made = NodeCluster(control_plane)
    made.create()
    return made


@pytest.fixture(scope="session")
def release(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the release's ISO; its root file system is the disk's under another name."""
    folder = tmp_path_factory.mktemp("iso")
    iso.make_iso(folder, template.root)
    return folder


@pytest.fixture
def machine(template: Template, tmp_path: Path) -> Iterator[Machine]:
    """Boot a guest."""
    with guest(template, tmp_path) as made:
        made.wait_for_boot()
        yield made


@pytest.fixture
def node(machine: Machine, cluster: NodeCluster, release: Path, template: Template, tmp_path: Path) -> Iterator[Node]:
    """Boot a guest with the toolkit's image, connected to API server and repository."""
    with ExitStack() as stack:
        port = stack.enter_context(iso.served(release))
        image = parts.toolkit_image(os.environ)
        pods = ToolkitPods(machine, cluster, repository=port, image=image, folder=tmp_path)
        pods.load_image()
        made = Node(machine=machine, pods=pods, cluster=cluster, template=template, folder=tmp_path, port=port)
        stack.enter_context(made.connected())
        yield made
