"""Wire a manager without a cluster, and print as JSON what each package took that it loaded.

imports.py runs it in the manager's environment, which has no `hack`: `python -P hack/bench/loaded.py run [FLAG…]`, or
`--with-plan run [FLAG…]` for a manager that has a plan to reconcile; the tests of the manager's imports do, too.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

#: The interpreter and what this file imports.
_INTERPRETER = "the interpreter"
_WITH_PLAN = "--with-plan"
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: Open, because it is read twice for each module.
_STATM = os.open("/proc/self/statm", os.O_RDONLY)


class _Meter:
    """Charges memory and processor time to the package whose module is being loaded."""

    def __init__(self) -> None:
        #: By top-level package: bytes, seconds, modules.
        self.packages: dict[str, list[float]] = {}
        self._loading = [_INTERPRETER]
        self._charged = (0, 0.0)
        self._charge()

    def begin(self, package: str) -> None:
        self._charge()
        self._loading.append(package)

    def end(self, modules: int) -> None:
        self._charge()
        self.packages[self._loading.pop()][2] += modules

    def _charge(self) -> None:
        used = _resident(), time.process_time()
        charged = self.packages.setdefault(self._loading[-1], [0, 0.0, 0])
        charged[0] += used[0] - self._charged[0]
        charged[1] += used[1] - self._charged[1]
        self._charged = used


class _Loader:
    """Loads a module by its own loader, and charges its package."""

    def __init__(self, loader: Any, package: str, meter: _Meter) -> None:
        self._loader = loader
        self._package = package
        self._meter = meter

    def create_module(self, spec: Any) -> Any:
        self._meter.begin(self._package)
        try:
            return self._loader.create_module(spec)
        finally:
            self._meter.end(modules=0)

    def exec_module(self, module: Any) -> None:
        self._meter.begin(self._package)
        try:
            self._loader.exec_module(module)
        finally:
            self._meter.end(modules=1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Finder:
    """Finds each module as the other finders do."""

    def __init__(self, meter: _Meter) -> None:
        self._meter = meter

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        finders: list[Any] = sys.meta_path
        for finder in finders:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    # `_ssl` is a part of ssl.
                    package = name.partition(".")[0].lstrip("_")
                    spec.loader = _Loader(spec.loader, package, self._meter)
                return spec
        return None


def _resident() -> int:
    return int(os.pread(_STATM, 100, 0).split()[1]) * _PAGE


def _wire(arguments: list[str], *, has_plan: bool) -> None:
    """Start a manager that finds no cluster, and then wire it as if it had found one."""
    sys.argv = ["upgrade-manager", *arguments, "--kubeconfig=/missing"]
    from upgrade_manager.cli.main import main  # noqa: PLC0415  # measured

    main()
    # All of these are loaded, but for the parts of the manager that build_manager loads.
    import asyncio  # noqa: PLC0415
    from random import Random  # noqa: PLC0415

    from prometheus_client import CollectorRegistry  # noqa: PLC0415

    from upgrade_manager.cli.application import build_manager  # noqa: PLC0415
    from upgrade_manager.cli.environment import Environment  # noqa: PLC0415
    from upgrade_manager.cli.options import parse_options  # noqa: PLC0415
    from upgrade_manager.kube.clock import SystemClock  # noqa: PLC0415
    from upgrade_manager.runtime.metrics import Metrics  # noqa: PLC0415

    async def build() -> None:
        parts: Any = dict.fromkeys(("transport", "lease", "repository", "certificates", "kubelets"))
        environment = Environment(**parts, clock=SystemClock(), random=Random())
        options: Any = parse_options(sys.argv[1:], os.environ)
        build_manager(environment, options, Metrics(CollectorRegistry()))

    asyncio.run(build())
    if has_plan:
        import upgrade_manager.pipeline.reconciler_factory  # noqa: F401, PLC0415  # measured


def _main() -> None:
    meter = _Meter()
    sys.meta_path.insert(0, _Finder(meter))
    arguments = [argument for argument in sys.argv[1:] if argument != _WITH_PLAN]
    _wire(arguments, has_plan=_WITH_PLAN in sys.argv)
    total = {"bytes": _resident(), "seconds": time.process_time()}
    modules: dict[str, Any] = dict(sys.modules)
    import json  # noqa: PLC0415  # the manager loads it, too

    print(
        json.dumps(
            {
                "packages": meter.packages,
                "modules": sorted(name for name in modules if modules[name] is not None),
                **total,
            }
        )
    )


if __name__ == "__main__":
    _main()
