"""Imports of modules outside the event loop."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

import pytest

from upgrade_manager.runtime.late_import import import_outside_loop

if TYPE_CHECKING:
    from pathlib import Path


async def test_module_is_imported_once_and_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text("import threading\nTHREADS = [threading.current_thread()]\n")
    monkeypatch.syspath_prepend(tmp_path)
    # Removed at the end of the test.
    monkeypatch.setitem(sys.modules, "imported_late", sys)
    monkeypatch.delitem(sys.modules, "imported_late")
    await import_outside_loop("imported_late")
    found = sys.modules["imported_late"]
    assert threading.main_thread() not in found.THREADS
    await import_outside_loop("imported_late")
    assert sys.modules["imported_late"] is found


async def test_failed_import_is_raised() -> None:
    with pytest.raises(ModuleNotFoundError, match="missing"):
        await import_outside_loop("upgrade_manager.missing")
