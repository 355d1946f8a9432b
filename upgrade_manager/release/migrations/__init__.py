"""What is known of the steps between two releases of Harvester: data and predicates.

pairs.py judges a pair, for Initialize, ImagePreload and the webhook.
"""

__all__ = ["pair", "pairs"]
