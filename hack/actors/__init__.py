"""The simulated controllers of a Harvester cluster: each actor does what its real counterpart does, and no more.

An actor reads the shared caches, writes under its own user agent, and decides from the cached objects at each
reconcile, so it can be stopped and started at any point. The state of hosts, which are not API objects, is in
`hosts`.
"""
