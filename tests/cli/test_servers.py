"""The webhook's part of the manager, by the options."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from cryptography.x509 import load_pem_x509_certificate
from prometheus_client import CollectorRegistry

from hack.simulation import Simulation
from upgrade_manager.cli.application import webhook_settings
from upgrade_manager.cli.options import RunOptions, parse_options
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.preflight.certificate_probe import TlsProbe
from upgrade_manager.runtime.cert_watcher import CERTIFICATE, KEY
from upgrade_manager.runtime.healthz import Probes
from upgrade_manager.runtime.manager import Manager, Stage, always_ready
from upgrade_manager.runtime.metrics import Metrics
from upgrade_manager.runtime.self_signed import make_pem
from webhook.wiring import add_webhook

CACHES, SERVER = (Stage.OTHERS, "webhook-caches"), (Stage.WEBHOOKS, "webhook")
READINESS = (Stage.OTHERS, "webhook-readiness")
ROTATION, ADDRESSES = (Stage.WEBHOOKS, "webhook-certificate"), (Stage.WEBHOOKS, "webhook-api-servers")
AFTER_ROTATION = [CACHES, ADDRESSES, SERVER, READINESS]
EXPIRATION = "certificate_expiration_timestamp_seconds"
#: Of a check that fails.
ERROR = "internal server error"


class Recorder:
    """Records what would be run."""

    def __init__(self) -> None:
        self.added: list[tuple[Stage, str]] = []
        #: By name: how each is run, and when it is ready.
        self.runnables: dict[str, tuple[Callable[[], Coroutine[Any, Any, None]], Callable[[], Awaitable[None]]]] = {}

    def add(
        self,
        stage: Stage,
        name: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        *,
        ready: Callable[[], Awaitable[None]] = always_ready,
    ) -> None:
        self.added.append((stage, name))
        self.runnables[name] = run, ready


def add(recorder: Recorder, options: RunOptions, *, probes: Probes, metrics: Metrics, simulation: Simulation) -> None:
    """Add the webhook as the command line does."""
    settings = webhook_settings(options)
    if settings is not None:
        add_webhook(
            cast("Manager", recorder),
            settings,
            probes=probes,
            metrics=metrics,
            client=simulation.client(),
            certificates=TlsProbe(),
            clock=SystemClock(),
            random=Random(0),
        )


@pytest.mark.parametrize(
    ("arguments", "environ", "added", "is_ready"),
    [
        pytest.param(["run"], {}, [ROTATION, *AFTER_ROTATION], False, id="self-made certificate"),
        pytest.param(["webhook"], {}, [ROTATION, *AFTER_ROTATION], False, id="alone"),
        pytest.param(["run", "--webhook-cert-path=/x"], {}, AFTER_ROTATION, False, id="certificate files"),
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
        add(recorder, options, probes=probes, metrics=Metrics(CollectorRegistry()), simulation=simulation)
        # It must be served first.
        assert ((await probes.readyz.report())[0] == 200) is is_ready
    assert recorder.added == added


@pytest.mark.real_loop
async def test_webhook_is_ready_once_it_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("upgrade_manager.runtime.healthz.MAX_AGE", 0)
    for name in (CERTIFICATE, KEY):
        (tmp_path / name).write_bytes(make_pem(now=datetime.now(UTC)))
    recorder, probes, metrics = Recorder(), Probes(), Metrics(CollectorRegistry())

    def sample(name: str) -> float | None:
        metrics.refresh()
        return metrics.registry.get_sample_value(f"harvester_upgrade_admission_{name}")

    async with Simulation(actors=False) as simulation, asyncio.TaskGroup() as group:
        options = RunOptions(webhook=("127.0.0.1", 0), webhook_certificates=str(tmp_path))
        add(recorder, options, probes=probes, metrics=metrics, simulation=simulation)
        assert await probes.readyz.report_one("webhook") == (500, f"{ERROR}: webhook is not served yet\n")
        assert (sample("ready"), sample(EXPIRATION) or 0) == (0, 0)
        run, bound = recorder.runnables["webhook"]
        task = group.create_task(run())
        await bound()
        assert await probes.readyz.report_one("webhook") == (200, "ok")
        assert sample("ready") == 1
        certificate = load_pem_x509_certificate((tmp_path / CERTIFICATE).read_bytes())
        assert sample(EXPIRATION) == certificate.not_valid_after_utc.timestamp()
        task.cancel()
