# The manager:          docker build -t harvester-upgrade-manager .
# The toolkit of Jobs:  docker build -t harvester-upgrade-toolkit --target toolkit .
# `make docker-buildx` pins both bases by their digests, and Debian's packages by a date (docs/releasing.md).
ARG PYTHON=3.13
ARG GO=1.26
ARG BASE=docker.io/library/python:${PYTHON}-slim
ARG BASE_DIGEST=
ARG GO_BASE=docker.io/library/golang:${GO}
ARG GO_DIGEST=

# cluster-upgrade upgrades Rancher by helm.
FROM ${GO_BASE}${GO_DIGEST:+@${GO_DIGEST}} AS helm
ARG HELM=v4.3.1
RUN CGO_ENABLED=0 GOBIN=/usr/local/bin go install -trimpath -ldflags="-s -w" helm.sh/helm/v4/cmd/helm@${HELM}

FROM ${BASE}${BASE_DIGEST:+@${BASE_DIGEST}} AS build
WORKDIR /src
COPY requirements requirements
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r requirements/run.txt \
 && awk '/^setuptools==/ {found = 1} found {print} found && !/\\$/ {exit}' requirements/demo.txt >build.txt \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --no-deps --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE ./
COPY upgrade_manager upgrade_manager
COPY webhook webhook
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --no-index -w dist . \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --no-index dist/*.whl \
 && /opt/venv/bin/pip uninstall --yes pip setuptools
# Not imported, 75 MB: the generated models and API classes of kubernetes_asyncio, zstandard's second implementation, which
# is for other interpreters, rich's highlighter of program texts, time zones, sources of extensions.
RUN cd /opt/venv/lib/python3*/site-packages \
 && rm -r kubernetes_asyncio/client/models kubernetes_asyncio/client/api zstandard/_cffi* pygments tzdata \
 && find /opt/venv -type f \( -name '*.pyi' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.[ch]' \) -delete \
 && find /opt/venv -type d -name tests -prune -exec rm -r {} +
COPY hack/image_packages.sh hack/image_programs.sh hack/image_root.sh hack/toolkit_programs.sh /
RUN /toolkit_programs.sh /opt/venv/bin && /image_root.sh /image

# What the shell lines of Jobs and of the upgrade repository call: the published toolkit image runs them, too.
FROM build AS programs
# YYYYMMDDTHHMMSSZ: the packages as Debian had them then, else today's. apt checks their signatures.
ARG SNAPSHOT=
RUN if [ -n "${SNAPSHOT}" ]; then \
        . /etc/os-release && rm -f /etc/apt/sources.list.d/* \
     && for archive in "debian/${SNAPSHOT} ${VERSION_CODENAME}" "debian/${SNAPSHOT} ${VERSION_CODENAME}-updates" \
            "debian-security/${SNAPSHOT} ${VERSION_CODENAME}-security"; do \
            echo "deb [check-valid-until=no] http://snapshot.debian.org/archive/${archive} main"; \
        done >/etc/apt/sources.list; \
    fi \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends mount nginx \
 && /image_programs.sh /programs cat gunzip gzip mkdir mount mountpoint nginx test umount \
 && mkdir -p /programs/var/lib/nginx /programs/var/log/nginx /programs/srv/www/htdocs \
 && /image_packages.sh /programs
COPY hack/nginx.conf /programs/etc/nginx/nginx.conf

# No package manager, no pip, no compiler, no set-user-ID program.
FROM scratch AS base
COPY --from=build /image /
ARG BASE
ARG BASE_DIGEST=
ARG SOURCE=https://github.com/harvester/harvester-upgrade-manager
ARG REVISION=
ARG VERSION=
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.base.name="${BASE}" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
ENV PATH=/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["upgrade-manager"]

# Root, in privileged Pods: its commands change the node.
FROM base AS toolkit
LABEL org.opencontainers.image.title="harvester-upgrade-toolkit" \
      org.opencontainers.image.description="The commands of the Jobs of an UpgradePlan"
COPY --from=helm /usr/local/bin/helm /usr/local/bin/helm
COPY --from=programs /programs /

FROM base AS manager
LABEL org.opencontainers.image.title="harvester-upgrade-manager" \
      org.opencontainers.image.description="Drives a Harvester cluster through an upgrade, declared as an UpgradePlan"
# Numeric, as runAsNonRoot requires.
USER 65532:65532
CMD ["run"]
