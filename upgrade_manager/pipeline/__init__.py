"""The upgrade itself: the table of phases, the engine that walks it, and one file per phase."""
