"""Schemas of objects: structural schemas, defaults, pruning, CEL rules, metadata validation."""
