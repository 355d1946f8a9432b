"""Fixtures of the tier `host`: a guest for each test, from one disk, and what it reaches outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hack.control_plane.control_plane import ControlPlane
from hack.real_host import iso, parts
from hack.real_host.guest import Template, guest
from hack.real_host.machine import Machine
from hack.real_host.node_cluster import NodeCluster
from hack.real_host.toolkit_pod import ToolkitPods
from tests.support.host.node import Node
from tests.support.host.templates import Templates

#: A test asks for them in its marker: elemental, of its version; or a guest that has none.
ELEMENTAL, WITHOUT_ELEMENTAL = "elemental", "without-elemental"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip the test with the reason if one of its marker's parts is missing; fixtures come later."""
    names = [name for name in asked(item) if name not in {ELEMENTAL, WITHOUT_ELEMENTAL}]
    if ELEMENTAL in asked(item):
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        names.append(parts.elemental_part(str(parameters.get("elemental_version", parts.DEFAULT_VERSION))))
    if reason := parts.missing(parts.this_machine(), *names):
        pytest.skip(reason)


def asked(item: pytest.Item) -> list[str]:
    """Return what the test's marker asks for."""
    return [str(name) for mark in item.iter_markers("host") for name in mark.args]


@pytest.fixture
def elemental_version(request: pytest.FixtureRequest) -> str:
    """Return the version of the guest's elemental, empty for a guest without it; a parameter takes its place."""
    return "" if WITHOUT_ELEMENTAL in asked(request.node) else parts.DEFAULT_VERSION


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    return Templates(tmp_path_factory)


@pytest.fixture
def template(templates: Templates, elemental_version: str) -> Template:
    """Return the disk of all tests with this version of elemental."""
    return templates.of(elemental_version)


@pytest.fixture
def release(templates: Templates, elemental_version: str) -> Path:
    """Return the release's ISO; its root file system is the disk's under another name."""
    return templates.release_of(elemental_version)


@pytest.fixture(scope="session")
def cluster(control_plane: ControlPlane) -> NodeCluster:
    made = NodeCluster(control_plane)
    made.create()
    return made


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
