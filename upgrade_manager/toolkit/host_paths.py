"""Paths on a Harvester host."""

from __future__ import annotations

#: Directory of this package's own files, on the persistent partition; the operating system's own root is replaced.
WORK = "/usr/local/harvester-upgrade"

RKE2_BIN = "/var/lib/rancher/rke2/bin"
CTR = f"{RKE2_BIN}/ctr"
CRICTL = f"{RKE2_BIN}/crictl"
CRICTL_CONFIG = "/var/lib/rancher/rke2/agent/etc/crictl.yaml"
CONTAINERD_SOCKET = "/run/k3s/containerd/containerd.sock"

#: RKE2 imports archives of this directory at its next start.
RKE2_IMAGES = "/var/lib/rancher/rke2/agent/images"
#: rancher-system-agent reads the images that it runs from archives of this directory.
AGENT_IMAGES = "/var/lib/rancher/agent/images"
