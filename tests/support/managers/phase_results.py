"""Results of phases, for comparison."""

from __future__ import annotations

from dataclasses import replace

from upgrade_manager.pipeline.outcome import PhaseResult, Waiting


def shown(result: PhaseResult | None) -> PhaseResult | None:
    """Return the result without its waits, which have tests beside the finders'."""
    return replace(result, waits=()) if isinstance(result, Waiting) else result
