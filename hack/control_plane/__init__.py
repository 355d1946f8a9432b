"""The real Kubernetes control plane: its build, its processes, and other projects' CustomResourceDefinitions."""

__all__ = ["assets", "backend", "control_plane"]
