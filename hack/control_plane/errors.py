"""What goes wrong around the real control plane's programs.

    RealKubeError
    ├── AssetsError      the programs are not there
    ├── ProvisionError   they cannot be had
    └── ControlPlaneError  one of them does not start
        └── EndedAtOnce  it was started and is gone, as when its port is taken

Each message is for the one who typed the command: what is wrong, and the remedy.
"""

from __future__ import annotations


class RealKubeError(Exception):
    """One sentence for the user, remedy included."""


class AssetsError(RealKubeError):
    """The programs of the real control plane are not on this machine; tests on it cannot run."""


class ProvisionError(RealKubeError):
    """The programs cannot be built here; nothing half-built is left."""


class ControlPlaneError(RealKubeError):
    """A process does not start; its name, and the end of its log."""


class EndedAtOnce(ControlPlaneError):
    """A process that was started is gone before it was ready."""
