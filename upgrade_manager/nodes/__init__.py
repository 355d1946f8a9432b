"""The upgrade of the nodes: pure decisions from what is observed, and the effects they ask for."""
