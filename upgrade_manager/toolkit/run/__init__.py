"""The run of a command in a Job: the table of steps, the objects of the steps, and the command's reports.

catalogue        the commands; `../commands` has one file for each, with the table of its steps
steps            runs a table: checks each effect, acts, and waits for it
context          the objects that the steps work on
own_plan         the UpgradePlan, by name and uid
attempts         waits for earlier Pods that write to the same host
ledger           records what a step is about to change, for the manager
job_report       annotations of the Job about what its step waits for
progress         shows the current step; `periodic_report` shows long work, `plan_events` are events on the UpgradePlan
background_work  threads for work that blocks
errors           the errors that end a command
"""

__all__ = [
    "attempts",
    "background_work",
    "catalogue",
    "context",
    "errors",
    "job_report",
    "ledger",
    "own_plan",
    "periodic_report",
    "plan_events",
    "progress",
    "steps",
]
