"""The connection of a command for users to a simulated cluster, in the process of the test."""

from __future__ import annotations

import random

from hack.simulation import Simulation
from upgrade_manager.cli.session import Session
from upgrade_manager.kube.client import Client


def session(simulation: Simulation) -> Session:
    client = Client(simulation.transport(), user_agent="test", random=random.Random(0))
    return Session(client=client, server="https://x", now=simulation.now)
