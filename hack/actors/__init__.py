"""The other inhabitants of a Harvester cluster, played: each actor does what its real counterpart does, no more.

An actor reads through the shared caches, writes under its own user agent, and decides anew from what it sees each time
it looks, so it can be stopped and started at any point. What is no API object, the machine that a node is, lives in
`hosts`.
"""
