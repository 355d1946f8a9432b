#!/bin/sh
# Builds or pushes an image: image.sh build|push|buildx IMAGE. Takes $CONTAINER_TOOL, else the first of docker, podman and
# buildah. $TARGET is manager or toolkit.
#
# buildx is the build of a release: for each of $PLATFORMS, and pushed. It pins the base images by the digests that their
# tags have now, and Debian's packages by today's date, and records both in build/TARGET.env, from which the same image is
# built again: env $(cat build/manager.env) hack/image.sh buildx IMAGE. docker attests the SBOM and the provenance.
set -eu
cd "$(dirname "$0")/.."

action=$1 image=$2
platforms=${PLATFORMS:-linux/amd64,linux/arm64} target=${TARGET:-manager}

find_tool() {
    for candidate in ${CONTAINER_TOOL:-docker podman buildah}; do
        if command -v "$candidate" >/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "image: ${CONTAINER_TOOL:-docker, podman or buildah} is needed, and is not on the PATH. Install one, or name another: CONTAINER_TOOL=/path/to/podman" >&2
    return 1
}

revision() { # the commit; -dirty with changes that it does not have
    commit=$(git rev-parse HEAD 2>/dev/null) || return 0
    echo "$commit$([ -z "$(git status --porcelain --untracked-files=no)" ] || echo -dirty)"
}

default() { # of argument $1 of the Dockerfile
    sed -n "s/^ARG $1=//p" Dockerfile
}

digest() { # of base image $1; $2 is the variable with which a user gives it
    case "$tool" in
        *docker) found=$("$tool" buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1") || found='' ;;
        *) found=$(skopeo inspect --no-tags --format '{{.Digest}}' "docker://$1") || found='' ;;
    esac
    case "$found" in
        sha256:*) echo "$found" ;;
        *)
            echo "image: the digest of $1 is not known. Set $2=sha256:…, or log in to its registry${found:+ (found: $found)}" >&2
            return 1
            ;;
    esac
}

pin() { # what a release is built from, in variables, and in a file
    BASE=${BASE:-docker.io/library/python:$(default PYTHON)-slim}
    BASE_DIGEST=${BASE_DIGEST:-$(digest "$BASE" BASE_DIGEST)}
    mkdir -p build
    echo "BASE=$BASE BASE_DIGEST=$BASE_DIGEST" >"build/$target.env"
    [ "$target" = toolkit ] || return 0
    GO_BASE=${GO_BASE:-docker.io/library/golang:$(default GO)}
    GO_DIGEST=${GO_DIGEST:-$(digest "$GO_BASE" GO_DIGEST)}
    SNAPSHOT=${SNAPSHOT:-$(date -u +%Y%m%dT000000Z)}
    echo "GO_BASE=$GO_BASE GO_DIGEST=$GO_DIGEST SNAPSHOT=$SNAPSHOT" >>"build/$target.env"
}

tool=$(find_tool)
if [ "$action" = buildx ]; then
    pin
fi
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' upgrade_manager/__init__.py)
REVISION=${REVISION:-$(revision)}
set -- --target "$target" --build-arg "VERSION=$version"
for pair in "REVISION=$REVISION" "SOURCE=${SOURCE:-}" "BASE=${BASE:-}" "BASE_DIGEST=${BASE_DIGEST:-}" \
    "GO_BASE=${GO_BASE:-}" "GO_DIGEST=${GO_DIGEST:-}" "SNAPSHOT=${SNAPSHOT:-}"; do
    [ -z "${pair#*=}" ] || set -- "$@" --build-arg "$pair"
done

case "$action" in
    build) "$tool" build "$@" --tag "$image" . ;;
    push) "$tool" push "$image" ;;
    buildx)
        case "$tool" in
            *docker)
                "$tool" buildx build "$@" --platform "$platforms" --sbom=true --provenance=mode=max \
                    --metadata-file "build/$target.json" --push --tag "$image" .
                ;;
            *)
                "$tool" build "$@" --platform "$platforms" --manifest "$image" .
                "$tool" manifest push --all "$image" "docker://$image"
                echo "image: $tool attests nothing. Attach build/sbom/$target.cdx.json of make sbom (docs/releasing.md)" >&2
                ;;
        esac
        ;;
    *)
        echo "image: $action is none of build, push, buildx" >&2
        exit 2
        ;;
esac
