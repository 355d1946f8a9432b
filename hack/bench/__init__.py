"""Benchmarks: the figures of docs/performance.md."""

__all__ = ["catalogue", "in_process", "informer", "phase_changes", "reaction"]
