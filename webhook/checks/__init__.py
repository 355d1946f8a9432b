"""One file for each check of a new plan; the table is catalogue.py, which lists them in the order of their messages."""
