"""The CRDs of the other projects on a Harvester cluster; `foreign` reads them."""
