"""An upgrade as its operators see it: a view of the plan and its events, as tables, lines or a document.

It sends no requests. Only `tables` and `screen` import rich.
"""

__all__ = ["document", "lines", "model", "screen", "tables", "view"]
