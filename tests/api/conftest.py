"""Property tests of pure functions: how long an example takes says something about the machine's load only."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
