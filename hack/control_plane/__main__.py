"""`python -m hack.control_plane`: have a real Kubernetes control plane at hand. See hack/control_plane/go/README.md."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from hack.control_plane.command import SystemRunner
from hack.control_plane.errors import RealKubeError
from hack.control_plane.progress import Progress
from hack.control_plane.provision import Provisioning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; the result is its exit code."""
    options = _parser().parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    progress = Progress(write=_write, monotonic=time.monotonic)
    provisioning = Provisioning(environ=os.environ, runner=SystemRunner(), progress=progress)
    try:
        if options.lock:
            provisioning.lock()
        assets = provisioning.run()
    except RealKubeError as error:
        print(f"real-kube: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("real-kube: interrupted; nothing half-built is left, and the next call goes on faster", file=sys.stderr)
        return _INTERRUPTED
    print(f"etcd, kube-apiserver, kube-controller-manager and kubectl are in {assets.folder}")
    print(f"the definitions of other projects' kinds are in {assets.crds}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hack.control_plane",
        description="Build etcd, kube-apiserver, kube-controller-manager and kubectl into the user's cache, once, and "
        "fetch the CustomResourceDefinitions of Harvester, Longhorn, Cluster API and KubeVirt.",
        epilog="KUBEBUILDER_ASSETS, where set, names a folder that has the four programs: they are not built then.",
    )
    parser.add_argument(
        "--lock",
        action="store_true",
        help="before that, write hack/control_plane/go/*/go.sum anew for the versions asked for there",
    )
    return parser


def _write(line: str) -> None:
    print(line, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
