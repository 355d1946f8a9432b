"""Finds what holds an upgrade up: a table of finders, each for one kind of wait, below the pipeline."""

__all__ = [
    "finder",
    "first_seen",
    "job_failures",
    "jobs",
    "pods",
    "rancher",
    "refusals",
    "remedy",
    "table",
    "view",
    "wait",
    "warnings",
]
