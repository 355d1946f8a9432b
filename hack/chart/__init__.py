"""The generator of the Helm chart's templates from the kustomize sources; `make manifests` runs it."""
