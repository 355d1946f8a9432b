// To update: README.md, beside this folder.
module harvester-upgrade-manager.local/hack/control_plane/helm

go 1.26.0

require helm.sh/helm/v4 v4.3.1
