"""Simulated hosts on which the toolkit's commands run: a directory tree, and programs that change it."""
