"""The demo: an upgrade of a simulated cluster, shown on a terminal."""

__all__ = ["options", "processes", "programs"]
