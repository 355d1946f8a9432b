"""The real Kubernetes control plane on this machine: its programs, its processes, and the kinds that others bring."""
