"""The simulated cluster as a program, and what it is filled with at the start."""
