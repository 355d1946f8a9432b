// To update: README.md, beside this folder.
module harvester-upgrade-manager.local/hack/control_plane/elemental-1.3.0

go 1.26.0

require github.com/rancher/elemental-toolkit v1.3.0

replace github.com/tredoe/osutil/v2 => ./osutil
