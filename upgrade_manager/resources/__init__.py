"""Builders of the objects that the manager creates: pure functions from the plan's facts to JSON."""
