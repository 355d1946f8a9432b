"""`helm …` as a process, first on the PATH of simulated containers."""

from __future__ import annotations

import asyncio
import os
import sys
from random import Random
from typing import TYPE_CHECKING

from hack.host.helm import SimulatedHelm
from upgrade_manager.kube.client import Client
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.kube.http_transport import HttpTransport
from upgrade_manager.kube.kubeconfig import load_config
from upgrade_manager.toolkit.host.host_programs import Call

if TYPE_CHECKING:
    from upgrade_manager.toolkit.host.host_programs import Output


async def _run() -> Output:
    """Run the call on the cluster of the environment's kubeconfig."""
    config = await load_config(environ=os.environ, now=SystemClock().now, kubeconfig=os.environ["KUBECONFIG"])
    async with HttpTransport(config) as transport:
        helm = SimulatedHelm(Client(transport, user_agent="helm", random=Random()))
        return await helm.run(Call(argv=("helm", *sys.argv[1:]), timeout=0))


def main() -> int:
    """Run helm and return its exit status."""
    output = asyncio.run(_run())
    sys.stdout.write(output.stdout)
    sys.stderr.write(output.stderr)
    return output.status


if __name__ == "__main__":
    sys.exit(main())
