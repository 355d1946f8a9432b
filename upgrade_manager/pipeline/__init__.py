"""The upgrade: the reconciler of UpgradePlans, the engine with its table of phases, and what the phases share."""

__all__ = ["context", "controller", "errors"]
