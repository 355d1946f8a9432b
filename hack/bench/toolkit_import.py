"""`python -m hack.bench.toolkit_import URL ROOT`: import the images of an ISO, and print seconds and peak memory.

`ctr` is a program that discards its input. The Kubernetes API is not used.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

from hack.bench.process import memory
from upgrade_manager.kube.clock import SystemClock
from upgrade_manager.runtime.logging import LogFormat, configure_logging
from upgrade_manager.toolkit.host.host_programs import ChrootPrograms
from upgrade_manager.toolkit.host.host_tree import HostTree
from upgrade_manager.toolkit.images.image_import import import_images
from upgrade_manager.toolkit.iso.checksums import Checksums
from upgrade_manager.toolkit.iso.release_files import ReleaseFiles
from upgrade_manager.toolkit.iso.repository_files import HttpRepositoryFiles
from upgrade_manager.toolkit.run.context import ToolkitContext


async def _import(url: str, root: Path) -> float:
    unused: Any = None
    checksums = Checksums({})
    async with HttpRepositoryFiles(url, user_agent="bench") as files:
        context = ToolkitContext(
            plan="bench",
            node="",
            pod="",
            shutdown=False,
            client=unused,
            tree=HostTree(root),
            programs=ChrootPrograms(root),
            files=files,
            checksums=checksums,
            iso=unused,
            report=unused,
            release=ReleaseFiles(files, checksums=checksums),
            charts=unused,
            migration=unused,
            events=unused,
            helm=unused,
            folder=unused,
            now=unused,
            random=Random(),
        )
        began = time.monotonic()
        await import_images(context)
        return time.monotonic() - began


if __name__ == "__main__":
    configure_logging(level="error", log_format=LogFormat.CONSOLE, stream=sys.stderr, now=SystemClock().now)
    seconds = asyncio.run(_import(sys.argv[1], Path(sys.argv[2])))
    print(json.dumps({"seconds": seconds, "memory": memory(os.getpid(), "VmHWM")}))
