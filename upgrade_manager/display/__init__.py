"""An upgrade as its operators see it: a view of the plan and its events, for the terminal, scripts or a browser.

It sends no requests. Only `screen`, `tables` and `unbroken` import rich, and only `page` jinja2.
"""

__all__ = [
    "attempts",
    "document",
    "expectation",
    "history",
    "leader",
    "lines",
    "model",
    "page",
    "remedies",
    "report",
    "screen",
    "tables",
    "unbroken",
    "view",
]
