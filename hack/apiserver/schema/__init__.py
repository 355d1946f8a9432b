"""What objects must look like: structural schemas, defaults, pruning, CEL rules, metadata rules."""
