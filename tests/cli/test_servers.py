"""The webhook's part of the manager, by the options."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest
from prometheus_client import CollectorRegistry

from hack.simulation import Simulation
from upgrade_manager.cli.options import RunOptions, parse_options
from upgrade_manager.cli.servers import add_webhook
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.manager import Stage
from upgrade_manager.runtime.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from upgrade_manager.runtime.manager import Manager

CACHES, SERVER = (Stage.OTHERS, "webhook-caches"), (Stage.WEBHOOKS, "webhook")
ROTATION = (Stage.WEBHOOKS, "webhook-certificate")


class Recorder:
    """Records what would be run."""

    def __init__(self) -> None:
        self.added: list[tuple[Stage, str]] = []

    def add(self, stage: Stage, name: str, _run: object, **_options: Any) -> None:
        self.added.append((stage, name))


@pytest.mark.parametrize(
    ("arguments", "environ", "added", "is_ready"),
    [
        pytest.param(["run"], {}, [ROTATION, CACHES, SERVER], False, id="self-made certificate"),
        pytest.param(["webhook"], {}, [ROTATION, CACHES, SERVER], False, id="alone"),
        pytest.param(["run", "--webhook-cert-path=/x"], {}, [CACHES, SERVER], True, id="certificate files"),
        pytest.param(["run"], {"ENABLE_WEBHOOKS": "false"}, [], True, id="turned off"),
        pytest.param(["run", "--webhook-bind-address=0"], {}, [], True, id="no address"),
    ],
)
async def test_options_decide_what_runs(
    arguments: list[str], environ: Mapping[str, str], added: list[tuple[Stage, str]], *, is_ready: bool
) -> None:
    options = parse_options(arguments, environ)
    assert isinstance(options, RunOptions)
    recorder, probes = Recorder(), Probes()
    async with Simulation(actors=False) as simulation:
        add_webhook(
            cast("Manager", recorder),
            options,
            probes=probes,
            metrics=Metrics(CollectorRegistry()),
            client=simulation.client(),
            clock=SystemClock(),
            random=Random(0),
        )
        # A self-made certificate must be served first.
        assert ((await probes.readyz.report())[0] == 200) is is_ready
    assert recorder.added == added
