"""The steps between two releases of Harvester, as far as they are known: data and predicates.

pairs.py judges a pair, for Initialize, ImagePreload and the webhook, and joins the rows of row.py that generic.py and
the modules of the pairs list, for the toolkit and `upgrade-manager steps`.
"""

__all__ = ["addons", "generic", "hosts", "nodes", "pair", "pairs", "row", "v1_7_to_v1_8", "v1_8_to_v1_9"]
