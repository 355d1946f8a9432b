"""The admission webhook of UpgradePlans; not implemented yet."""
