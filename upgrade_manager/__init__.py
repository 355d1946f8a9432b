"""The Harvester Upgrade Manager: drives a cluster through the upgrade that an UpgradePlan declares."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("harvester-upgrade-manager")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"
