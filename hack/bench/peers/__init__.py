"""One small controller, written with this project's library and with others, and what compares them.

`with_*.py` are the controllers, each run in a separate environment (`environments`); `report` is all that they
share. `speed` and `faults` are the benchmarks, on the API servers of `servers`; `requests` is what a server logged.
`results` makes the tables of docs/performance.md; `drawing` its plots, with the program `plots`.
"""
