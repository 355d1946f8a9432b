"""The printer columns that kinds of any definition show: name and age."""

from __future__ import annotations

from dataclasses import replace

from hack.apiserver.resources import Column

NAME = Column(name="Name", type="string", json_path=".metadata.name", format="name", description="Name of the object")
#: Custom columns have the type date; built-in ones declare the same column as string.
AGE = Column(
    name="Age", type="date", json_path=".metadata.creationTimestamp", description="Time since the object was created"
)
BUILTIN_AGE = replace(AGE, declared="string", absent="<unknown>")
