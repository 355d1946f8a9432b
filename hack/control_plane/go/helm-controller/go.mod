// To update: README.md, beside this folder.
module harvester-upgrade-manager.local/hack/control_plane/helm-controller

go 1.26.0

require github.com/k3s-io/helm-controller v0.17.7
