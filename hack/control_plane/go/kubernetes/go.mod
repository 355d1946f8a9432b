// The whole of what is pinned by hand: one version. README.md beside this folder says where the replacements are.
module harvester-upgrade-manager.local/hack/control_plane/kubernetes

go 1.25.0

require k8s.io/kubernetes v1.35.4
