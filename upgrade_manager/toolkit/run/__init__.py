"""The run of a command in a Job: its table of steps, the objects they work on, and its reports.

catalogue        the commands; `../commands` has one file for each, with the table of its steps
steps            runs a table: checks each effect, acts, and waits for it
context          what the steps work on
attempts         waits for earlier Pods that write to the same host
progress         shows the current step; `periodic_report` shows long work, `plan_events` are events on the UpgradePlan
background_work  threads for work that blocks
errors           what ends a command
"""

__all__ = [
    "attempts",
    "background_work",
    "catalogue",
    "context",
    "errors",
    "periodic_report",
    "plan_events",
    "progress",
    "steps",
]
