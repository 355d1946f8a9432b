"""The real Kubernetes control plane as processes on this machine, with the system-upgrade-controller.

`flags` has the processes' command lines, and `supervisor` runs them.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hack.control_plane import flags
from hack.control_plane.certificates import Authority, client_context
from hack.control_plane.kubeconfig import kubeconfig, write
from upgrade_manager.api.keys import CATTLE_SYSTEM

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from hack.control_plane.assets import Assets

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
UPGRADE_CONTROLLER = "system-upgrade-controller"
#: Processes that work on the API server's objects.
CONTROLLERS = (CONTROLLER_MANAGER, SCHEDULER, UPGRADE_CONTROLLER)
#: Half as many garbage collections, for half as much memory again: a ninth of kube-apiserver's processor time.
_GO_RUNTIME = {"GOGC": "200"}
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
#: Seconds until a process has to be ready, between two checks, and for the response to one.
_READY_TIMEOUT = 90.0
_READY_INTERVAL = 0.05
_RESPONSE_TIMEOUT = 5.0
#: Another process may take a free port between its choice and its use.
_PORT_ATTEMPTS = 3
_LOG_LINES = 3


class ControlPlaneError(Exception):
    """A process does not start or has ended; its name, and the end of its log."""


class _Exited(ControlPlaneError):
    """A process ended before it was ready, as when its port is taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user that kube-apiserver knows by a token."""

    token: str
    name: str
    groups: tuple[str, ...]


#: May do everything.
ADMIN = Account(token="control-plane-admin", name="admin", groups=("system:masters",))  # noqa: S106  # on loopback only


class ControlPlane:
    """Runs etcd and kube-apiserver while its context is entered; `start` adds controllers.

    Calls block until they have succeeded. All data is in one temporary folder, which is removed however this process
    ends. `api_flags` are added to kube-apiserver's. Raises ControlPlaneError.
    """

    def __init__(self, assets: Assets, *, accounts: tuple[Account, ...] = (), api_flags: tuple[str, ...] = ()) -> None:
        self.assets = assets
        #: Of kube-controller-manager, from its next start on.
        self.controllers: tuple[str, ...] = flags.CONTROLLERS
        self._api_flags = api_flags
        self._accounts = (ADMIN, *accounts)
        self._authority = Authority(now=datetime.now(UTC))
        self._tls = client_context(self.certificate)
        #: Of the processes' data and logs.
        self.folder: Path
        self._supervisor: subprocess.Popen[str]
        self._ports: dict[str, int] = {}
        #: Processes that have to be alive.
        self._running: set[str] = set()
        #: Of each process, its further variables.
        self._environs: dict[str, dict[str, str]] = {}
        #: Callers come from several threads; the supervisor takes one command at a time.
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Of kube-apiserver; a restart keeps it."""
        return f"https://127.0.0.1:{self._ports[API_SERVER]}"

    @property
    def certificate(self) -> bytes:
        """PEM, of the authority that clients have to trust."""
        return self._authority.certificate

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix="control-plane-"))
        try:
            flags.write_files(self.folder, self._authority, self._accounts)
            self._supervisor = subprocess.Popen(  # our own program
                [sys.executable, "-I", str(_SUPERVISOR), str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=os.environ | _GO_RUNTIME,
                # A Ctrl-C is for this process alone.
                start_new_session=True,
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        try:
            self._start_on_free_port(ETCD)
            self._start_on_free_port(API_SERVER)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def configure(self, name: str, **environ: str) -> None:
        """Set the variables of a process, for its next start; kill it if it runs with others."""
        if name in self._running and self._environs.get(name, {}) != environ:
            self.kill(name)
        self._environs[name] = environ

    def start(self, name: str, *more: str) -> None:
        """Start a process that does not run, with more flags, and wait until it is ready."""
        if name in self._running:
            return
        argv = [str(self.assets.folder / name), *self._flags(name), *more]
        self._ready_file(name).unlink(missing_ok=True)
        response = self._command("start", name, argv=argv, environ=self._environs.get(name, {}))
        if "error" in response:
            raise ControlPlaneError(f"{name} cannot be started: {response['error']}")
        self._wait_until_ready(name)
        self._running.add(name)

    def kill(self, name: str) -> None:
        """Send SIGKILL and wait for the end."""
        self._running.discard(name)
        self._command("kill", name)

    def pause(self, name: str) -> None:
        """Stop a running process without ending it."""
        if name in self._running:
            self._command("signal", name, number=signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Continue a paused process."""
        if name in self._running:
            self._command("signal", name, number=signal.SIGCONT)

    def check(self) -> None:
        """Raise ControlPlaneError when a process has ended that was not killed."""
        for name in sorted(self._running):
            code = self._command("poll", name)["code"]
            if code is not None and name in self._running:
                how = f"exit status {code}" if code >= 0 else f"signal {-code}"
                raise ControlPlaneError(f"{name} has ended ({how}); start again: {self._log_tail(name)}")

    def compact(self) -> None:
        """Compact etcd's history, so that watches from older versions get 410."""
        revision = self._etcd("range", {"key": "AA=="})["header"]["revision"]
        self._etcd("compaction", {"revision": revision, "physical": True})

    def keys(self) -> frozenset[str]:
        """Return etcd's keys of all objects."""
        everything = {"key": _base64("/registry/"), "range_end": _base64("/registry0"), "keys_only": True}
        return frozenset(base64.b64decode(pair["key"]).decode() for pair in self._etcd("range", everything)["kvs"])

    def _start_on_free_port(self, name: str) -> None:
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._ports[name] = free_port()
            try:
                return self.start(name)
            except _Exited:
                if attempt == _PORT_ATTEMPTS:
                    raise
        return None

    def _wait_until_ready(self, name: str) -> None:
        deadline = time.monotonic() + _READY_TIMEOUT
        while True:
            is_ready = self._is_ready(name)
            # Checked last: another process may have taken the port, and respond.
            if self._command("poll", name)["code"] is not None:
                raise _Exited(f"{name} ended at once: {self._log_tail(name)}")
            if is_ready:
                return
            if time.monotonic() > deadline:
                self.kill(name)
                raise ControlPlaneError(f"{name} is not ready after {_READY_TIMEOUT:g} s: {self._log_tail(name)}")
            time.sleep(_READY_INTERVAL)

    def _is_ready(self, name: str) -> bool:
        if name == UPGRADE_CONTROLLER:
            return self._ready_file(name).exists()
        if name in CONTROLLERS:
            return True
        address = ("127.0.0.1", self._ports[name])
        connection = (
            http.client.HTTPConnection(*address, timeout=_RESPONSE_TIMEOUT)
            if name == ETCD
            else http.client.HTTPSConnection(*address, timeout=_RESPONSE_TIMEOUT, context=self._tls)
        )
        # Another process may have the port, and send anything.
        with suppress(OSError, http.client.HTTPException), closing(connection):
            connection.request("GET", "/readyz", headers={"authorization": f"Bearer {ADMIN.token}"})
            return connection.getresponse().status == http.client.OK
        return False

    def _etcd(self, call: str, body: Mapping[str, Any]) -> Any:
        """Send a request to etcd's JSON gateway."""
        with closing(http.client.HTTPConnection("127.0.0.1", self._ports[ETCD], timeout=_READY_TIMEOUT)) as connection:
            connection.request("POST", f"/v3/kv/{call}", body=json.dumps(body))
            return json.loads(connection.getresponse().read())

    def _flags(self, name: str) -> list[str]:
        if name == ETCD:
            return flags.etcd(folder=self.folder, port=self._ports[ETCD], peer=free_port())
        if name == API_SERVER:
            needed = flags.api_server(folder=self.folder, port=self._ports[API_SERVER], etcd=self._ports[ETCD])
            return [*needed, *self._api_flags]
        path = self.folder / "kubeconfig"
        write(path, kubeconfig(server=self.url, authority=self.certificate, token=ADMIN.token))
        if name == UPGRADE_CONTROLLER:
            return [str(path), CATTLE_SYSTEM, name]
        if name == SCHEDULER:
            return flags.scheduler(kubeconfig=path)
        return flags.controller_manager(folder=self.folder, kubeconfig=path, controllers=self.controllers)

    def _ready_file(self, name: str) -> Path:
        """Return the file that our program of the system-upgrade-controller writes when it is ready."""
        return self.folder / f"{name}.ready"

    def _command(self, do: str, name: str, **more: Any) -> Any:
        stdin, stdout = self._supervisor.stdin, self._supervisor.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the supervisor has no pipes")
        with self._lock:
            print(json.dumps({"do": do, "name": name, **more}), file=stdin, flush=True)
            return json.loads(stdout.readline())

    def _log_tail(self, name: str) -> str:
        lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
        return " / ".join(lines[-_LOG_LINES:])

    def _stop(self) -> None:
        """Close the supervisor's input, which makes it stop everything, and wait for it."""
        with self._lock:
            self._supervisor.communicate()


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def free_port() -> int:
    """Return a port on which no process listens."""
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
