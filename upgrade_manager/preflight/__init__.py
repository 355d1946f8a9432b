"""Checks made in Initialize, before an upgrade changes anything: disk space and API server certificates."""

__all__ = ["certificate_probe", "certificates", "check", "kubelet_transport", "kubelets", "poller"]
