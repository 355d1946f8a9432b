"""Checks of an installation of the manager, one row each; `upgrade-manager check` runs them.

`catalogue` lists and runs them; `row` is their result, `cluster` what they read from.
"""

__all__ = ["catalogue", "cluster", "row"]
