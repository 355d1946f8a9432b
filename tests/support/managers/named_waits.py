"""Records the phases that wait without naming what for, in whole upgrades of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upgrade_manager.pipeline.engine import Engine
from upgrade_manager.pipeline.outcome import PhaseResult, Waiting

if TYPE_CHECKING:
    import pytest

    from upgrade_manager.pipeline.context import ReconcileContext


def record_unnamed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which engines add phase and message of each wait without a name."""
    found: list[str] = []
    advance = Engine.advance

    async def recording(engine: Engine, ctx: ReconcileContext) -> PhaseResult:
        result = await advance(engine, ctx)
        if isinstance(result, Waiting) and not (result.waits or result.held):
            found.append(f"{ctx.status.phase}: {result.message}")
        return result

    monkeypatch.setattr(Engine, "advance", recording)
    return found
