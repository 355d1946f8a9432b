"""The admission server for UpgradePlans: a package beside the pipeline, in the same distribution."""
