"""Finds what holds an upgrade up: a table of finders, each for one kind of wait, below the pipeline."""

__all__ = [
    "finder",
    "jobs",
    "pods",
    "rancher",
    "remedy",
    "table",
    "view",
    "wait",
    "warnings",
]
