// To update: README.md, beside this folder.
module harvester-upgrade-manager.local/hack/control_plane/etcd

go 1.26.0

require go.etcd.io/etcd/server/v3 v3.6.16
