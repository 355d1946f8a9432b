// Only a place for go.sum: its modules are read, never compiled.
module harvester-upgrade-manager.local/hack/control_plane/crds

go 1.25.0
