// Only a place for go.sum: of the module, elemental.py reads one folder.
module harvester-upgrade-manager.local/hack/control_plane/osutil

go 1.25.0
