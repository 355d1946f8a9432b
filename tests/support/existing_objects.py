"""Objects named "one" that exist before a row of the conformance table about deletion."""

from __future__ import annotations

from tests.support.api_calls import delete, post
from tests.support.maps import MAPS
from tests.support.shapes import WIDGETS, widget

MAP = f"{MAPS}/one"
WIDGET = f"{WIDGETS}/one"
ONE = (post(MAPS, {"metadata": {"name": "one"}}),)
HELD = (post(MAPS, {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),)
DYING = (*HELD, delete(MAP))
CUSTOM = (post(WIDGETS, widget()),)
CUSTOM_HELD = (post(WIDGETS, widget() | {"metadata": {"name": "one", "finalizers": ["a.io/b"]}}),)
#: Parts of a response that show whether an object is deleted or terminating.
PLACED = (
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "metadata.generation",
    "kind",
    "status",
    "details",
)
