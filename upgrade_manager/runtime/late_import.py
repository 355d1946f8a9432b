"""Imports of modules that only a leader with work needs: pipeline/controller.py and ending/leftovers.py call it.

An import statement inside the caller follows, which has its types and takes no time by then.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module


async def import_outside_loop(module: str) -> None:
    """Import a module in a thread, so that the event loop goes on meanwhile.

    A call during another one for the same module returns at once: the import statement waits for the thread.
    """
    if module not in sys.modules:
        await asyncio.to_thread(import_module, module)
