from __future__ import annotations

from random import Random

import pytest

from hack.crds.foreign import our_crd
from tests.support.cluster.preflight import PreflightSetup, api_servers
from tests.support.server.apiserver import make_server
from upgrade_manager.kube.client import Client


@pytest.fixture
async def bare() -> PreflightSetup:
    """Return a setup without endpoints."""
    server = make_server()
    server.define([our_crd()])
    return PreflightSetup(Client(server, user_agent="test", random=Random(1)))


@pytest.fixture
async def setup(bare: PreflightSetup) -> PreflightSetup:
    await bare.endpoints(api_servers("10.0.0.1", "10.0.0.2"))
    return bare
