#!/bin/sh
# Builds the wheel, installs it with nothing but its declared dependencies into an empty environment, and starts it.
# Dependencies have the versions of .venv.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_DISABLE_PIP_VERSION_CHECK

cp -R pyproject.toml README.md LICENSE upgrade_manager webhook "$work"
.venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --no-index --wheel-dir "$work/dist" "$work"
.venv/bin/python -m pip freeze --exclude-editable >"$work/versions.txt"
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --constraint "$work/versions.txt" "$work"/dist/*.whl

cd "$work/venv"
bin/python -m pip check
bin/upgrade-manager --version
bin/upgrade-manager run --help >help.txt
# What the manager imports when it runs, and the program that it starts for its certificate.
bin/python -c 'import upgrade_manager.cli.run; from upgrade_manager.kube.kubeconfig import config_library; config_library()'
bin/python -m upgrade_manager.runtime.self_signed >certificate.pem
