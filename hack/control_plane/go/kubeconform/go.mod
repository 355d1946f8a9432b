// To update: README.md, beside this folder.
module harvester-upgrade-manager.local/hack/control_plane/kubeconform

go 1.26.0

require github.com/yannh/kubeconform v0.8.0
