"""The simulated cluster on the embedded API server, in real time, behind HTTPS."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from hack.actors.caches import Caches
from hack.actors.cast import Cast
from hack.actors.context import ActorContext
from hack.actors.hosts import Hosts
from hack.actors.repository_access import RepositoryServer
from hack.apiserver.httpposter import HttpPoster
from hack.apiserver.identity import ADMIN
from hack.apiserver.server import ApiServer
from hack.certificates import Authority, server_context
from hack.cluster.foreign import foreign_crds, our_crd
from hack.cluster.kubeconfig import kubeconfig, write
from hack.cluster.seeds import Seeds
from hack.gateway import Gateway
from hack.middleware import Middleware
from upgrade_manager.kube.client import Client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hack.cluster.options import Options
    from hack.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A cluster that is set up."""

    api_url: str
    #: `{plan}` stands for the plan's name.
    repo_url: str
    #: Ends only when something in the cluster breaks.
    task: asyncio.Task[None]


def utc_now() -> datetime:
    """The wall time."""
    return datetime.now(UTC)


@asynccontextmanager
async def cluster(options: Options, scenario: Scenario) -> AsyncIterator[Running]:
    """Start everything and stop it afterwards. Raises OSError where a port or a file is not to be had."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="simulated-cluster-")))
        authority = Authority(now=utc_now())
        server = ApiServer(now=utc_now, random=_dice(options, "server"), poster=HttpPoster(services={}))
        # What clients speak to has the middleware in front, as in process; without rules it only counts.
        middleware = Middleware(server, random=_dice(options, "middleware"))
        tls = server_context(authority.server(), folder)
        gateway = await stack.enter_async_context(Gateway(middleware, tls=tls, port=options.port))
        repository = await stack.enter_async_context(RepositoryServer())
        iso_url = f"{repository.url}/iso/harvester-{scenario.release.harvester}-amd64.iso"
        cast = _cast(options, scenario, server, iso_url)
        repository.serve(cast.repository)
        group = await stack.enter_async_context(asyncio.TaskGroup())
        tasks = [group.create_task(server.run(), name="API server")]
        stack.push_async_callback(_cancel, tasks)
        stack.callback(server.close)
        await _fill(options, scenario, server, iso_url=iso_url, api_url=gateway.url)
        tasks.append(group.create_task(cast.run(), name="cast"))
        await cast.ready()
        token = token_urlsafe()
        server.authenticator.register(token, ADMIN)
        write(options.kubeconfig, kubeconfig(server=gateway.url, authority=authority.certificate, token=token))
        yield Running(api_url=gateway.url, repo_url=repository.url + "/{plan}", task=tasks[-1])


def _cast(options: Options, scenario: Scenario, server: ApiServer, iso_url: str) -> Cast:
    reader = Client(server, user_agent="simulated-cluster", random=_dice(options, "caches"))
    context = ActorContext(
        transport=server,
        scenario=scenario,
        seed=str(options.seed),
        random=_dice(options, "cast"),
        now=utc_now,
        scale=options.scale,
        caches=Caches(reader, random=_dice(options, "informers")),
        hosts=Hosts(scenario),
        iso_url=iso_url,
    )
    cast = Cast(context)
    cast.answer(server.handlers)
    return cast


async def _fill(options: Options, scenario: Scenario, server: ApiServer, *, iso_url: str, api_url: str) -> None:
    client = Client(server, user_agent="simulated-cluster", random=_dice(options, "seeds"))
    seeds = Seeds(client, scenario, now=utc_now, iso_url=iso_url, api_url=api_url)
    await seeds.define([*foreign_crds(), *([our_crd()] if options.install_crds else [])])
    await seeds.plant()


def _dice(options: Options, name: str) -> Random:
    return Random(f"{options.seed}/{name}")


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in reversed(tasks):
        task.cancel()
