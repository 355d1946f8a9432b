"""Errors of a command, which ends with exit status 1.

ToolkitError
├── StepFailed          the step cannot be completed; a repeated run starts at this step
│   ├── StepTimedOut    the condition for which the step waits was not met in time
│   ├── ProgramFailed   a program of the host returned an error
│   ├── ProgramTimedOut a program of the host did not end
│   ├── BadArchive      a downloaded file is not what the release promises
│   │   └── WrongChecksum  its content is not that of the ISO's file
│   └── OutOfSpace      the file system lacks the space that the step needs
└── BadEnvironment      the Pod lacks a variable or a mount
"""

from __future__ import annotations


class ToolkitError(Exception):
    """The cause in one line, for users."""


class BadEnvironment(ToolkitError):
    """The Pod lacks an environment variable or a mount."""


class StepFailed(ToolkitError):
    """The step cannot be completed."""


class StepTimedOut(StepFailed):
    """The condition for which the step waits was not met in time."""


class ProgramFailed(StepFailed):
    """A program of the host returned a status other than 0."""


class ProgramTimedOut(StepFailed):
    """A program of the host did not end in time and was killed."""


class BadArchive(StepFailed):
    """A downloaded file is not what the release promises."""


class WrongChecksum(BadArchive):
    """The content of a file differs from the ISO's file."""


class OutOfSpace(StepFailed):
    """The file system lacks the space that the step needs."""
