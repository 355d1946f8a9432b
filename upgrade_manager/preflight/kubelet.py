from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

from upgrade_manager.kube.errors import REFUSED, KubeError, Throttled, Transient
from upgrade_manager.preflight.disk import Disk, read_threshold, read_usage
from upgrade_manager.preflight.errors import Unanswered

if TYPE_CHECKING:
    from upgrade_manager.kube.client import Client

#: Seconds for both questions to one kubelet.
TIMEOUT = 10.0
#: Bytes that are kept of an answer; of a summary the node's part comes first, of a few dozen kilobytes at most.
HEAD = 512 * 1024


async def read_disk(client: Client, node: str) -> Disk:
    """Ask the node's kubelet, through the API server.

    Raises Unanswered; Transient or Throttled where it is the API server that has no answer.
    """
    proxy = f"/api/v1/nodes/{quote(node, safe='')}/proxy"
    try:
        async with asyncio.timeout(TIMEOUT):
            threshold = read_threshold(await client.read_path(f"{proxy}/configz", limit=HEAD, timeout=TIMEOUT))
            used, capacity = read_usage(await client.read_path(f"{proxy}/stats/summary", limit=HEAD, timeout=TIMEOUT))
    except TimeoutError as error:
        raise Unanswered(f"no answer within {TIMEOUT:g} s") from error
    except Throttled:
        raise
    except KubeError as error:
        if isinstance(error, Transient) and error.reason == REFUSED:
            raise
        raise Unanswered(str(error)) from error
    return Disk(used=used, capacity=capacity, threshold=threshold)
