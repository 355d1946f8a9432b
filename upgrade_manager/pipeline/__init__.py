"""The upgrade: the reconciler of UpgradePlans, the engine and its table of phases, and a package of the phases."""
