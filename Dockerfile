# The manager with its locked dependencies: docker build -t harvester-upgrade-manager .
ARG PYTHON=3.13
ARG GO=1.26

# cluster-upgrade upgrades Rancher by helm.
FROM golang:${GO} AS helm
ARG HELM=v4.3.1
RUN CGO_ENABLED=0 GOBIN=/usr/local/bin go install -trimpath -ldflags=-s helm.sh/helm/v4/cmd/helm@${HELM}

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY requirements requirements
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir --require-hashes -r requirements/run.txt \
 && awk '/^setuptools==/ {found = 1} found {print} found && !/\\$/ {exit}' requirements/test.txt >build.txt \
 && pip install --no-cache-dir --require-hashes -r build.txt
COPY pyproject.toml README.md LICENSE ./
COPY upgrade_manager upgrade_manager
COPY webhook webhook
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --no-index -w dist . \
 && /opt/venv/bin/pip install --no-cache-dir --no-deps --no-index dist/*.whl \
 && /opt/venv/bin/pip uninstall --yes pip

FROM python:${PYTHON}-slim
COPY --from=build /opt/venv /opt/venv
COPY --from=helm /usr/local/bin/helm /usr/local/bin/helm
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1
# Numeric, as runAsNonRoot requires.
USER 65532:65532
ENTRYPOINT ["upgrade-manager"]
CMD ["run"]
