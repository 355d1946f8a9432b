"""The steps between two releases of Harvester, as far as they are known: data and predicates.

pairs.py judges a pair, for Initialize, ImagePreload and the webhook.
"""

__all__ = ["pair", "pairs"]
