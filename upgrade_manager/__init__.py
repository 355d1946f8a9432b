"""The Harvester Upgrade Manager: drives a cluster through the upgrade that an UpgradePlan declares."""

#: Read by the build, too; asking the installed package for it would cost every start 25 ms.
__version__ = "0.1.0"
