"""The command line `upgrade-manager`, and the wiring of the manager."""

__all__ = ["application", "gc_tuning", "main", "options"]
