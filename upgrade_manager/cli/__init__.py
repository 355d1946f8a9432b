"""The command line, and the wiring of everything into one process."""
