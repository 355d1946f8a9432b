"""One file per check of a new plan."""
