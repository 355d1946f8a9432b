// To update: README.md, beside this folder.
module harvester-upgrade-manager.local/hack/control_plane/elemental-0.3.1

go 1.26.0

require github.com/rancher/elemental-cli v0.3.1

replace github.com/tredoe/osutil/v2 => ./osutil

replace github.com/zloylos/grsync v1.6.1 => github.com/rancher-sandbox/grsync v1.6.2-0.20220526080038-4032e9b0e97c
