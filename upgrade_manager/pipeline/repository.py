"""What the manager reads from the upgrade repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.kube.errors import KubeError, Transient
from upgrade_manager.pipeline.errors import BadRepository

if TYPE_CHECKING:
    from upgrade_manager.pipeline.repository_client import Fetcher

#: Seconds for one file.
TIMEOUT = 10.0
#: What to do about a repository that does not do its part.
REMEDY = "see its Pods in namespace harvester-system"
OK = 200
NOT_FOUND = 404


async def read(fetcher: Fetcher, url: str, *, limit: int) -> bytes | None:
    """The file's content, of at most `limit` bytes; None where there is none (404). Raises BadRepository."""
    try:
        answer = await fetcher.fetch(url, limit=limit, timeout=TIMEOUT)
    except Transient as error:
        raise BadRepository(f"the upgrade repository does not answer: {error}; {REMEDY}") from error
    except KubeError as error:
        raise BadRepository(f"{error}; what answers there is no Harvester ISO") from error
    if answer.status == NOT_FOUND:
        return None
    if answer.status != OK:
        raise BadRepository(f"{url}: the upgrade repository answers HTTP {answer.status}; {REMEDY}")
    return answer.body
