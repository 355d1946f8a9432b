"""The real Kubernetes control plane as processes on this machine: etcd, kube-apiserver, kube-controller-manager."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hack.cluster.certificates import Authority, client_context
from hack.control_plane import flags
from hack.control_plane.errors import ControlPlaneError, EndedAtOnce

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from hack.control_plane.assets import Assets

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
#: Seconds until a process has to be ready, and between two looks at it.
_PATIENCE = 90.0
_LOOK = 0.05
#: And for an answer: who has the port may not be ours.
_ANSWER = 5.0
_OK = 200
#: Another process may take a free port between its choice and its use.
_ATTEMPTS = 3
_TAIL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Somebody whom the API server knows by a token."""

    token: str
    name: str
    groups: tuple[str, ...]


#: May do everything.
ADMIN = Account(token="control-plane-admin", name="admin", groups=("system:masters",))  # noqa: S106  # on loopback only


class ControlPlane:
    """Starts when its context is entered, without the controller manager; all calls block until they have succeeded.

    Everything that it stores lies in one temporary folder, which goes with it in whatever way this process ends.
    `api_flags` are kube-apiserver's, besides those that it needs. Raises ControlPlaneError.
    """

    def __init__(self, assets: Assets, *, accounts: tuple[Account, ...] = (), api_flags: tuple[str, ...] = ()) -> None:
        self._assets = assets
        self._api_flags = api_flags
        self._accounts = (ADMIN, *accounts)
        self._authority = Authority(now=datetime.now(UTC))
        self._tls = client_context(self.certificate)
        self._folder: Path
        self._supervisor: subprocess.Popen[str]
        self._api_port = 0
        self._etcd_port = 0
        #: What is to run.
        self._running: set[str] = set()
        #: One question to the supervisor at a time: callers come from threads of their own.
        self._asking = threading.Lock()

    @property
    def assets(self) -> Assets:
        """What it is made of."""
        return self._assets

    @property
    def url(self) -> str:
        """Of kube-apiserver; stays the same when it is started again."""
        return f"https://127.0.0.1:{self._api_port}"

    @property
    def certificate(self) -> bytes:
        """PEM, of the authority that clients have to trust."""
        return self._authority.certificate

    @property
    def folder(self) -> Path:
        """Where the processes keep their data and logs."""
        return self._folder

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="control-plane-"))
        try:
            self._prepare()
            self._supervisor = subprocess.Popen(  # our own program
                [sys.executable, "-I", str(_SUPERVISOR), str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                # A Ctrl-C reaches it through us.
                start_new_session=True,
            )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        try:
            self._start_on_free_port(ETCD)
            self._start_on_free_port(API_SERVER)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def start(self, name: str) -> None:
        """Start one that was killed, or the controller manager, and wait until it is ready; nothing where it runs."""
        if name in self._running:
            return
        argv = {ETCD: self._etcd_argv, API_SERVER: self._api_argv, CONTROLLER_MANAGER: self._manager_argv}[name]()
        answer = self._ask({"do": "start", "name": name, "argv": argv})
        if "error" in answer:
            raise ControlPlaneError(f"{name} cannot be started: {answer['error']}")
        self._wait_until_ready(name)
        self._running.add(name)

    def _wait_until_ready(self, name: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        is_ready = False
        while not is_ready:
            is_ready = self._is_ready(name)
            # Asked last: what answers is somebody else's where ours has not got the port.
            if self._ask({"do": "look", "name": name})["code"] is not None:
                raise EndedAtOnce(f"{name} ended at once: {self._last_words(name)}")
            if not is_ready and time.monotonic() > deadline:
                self.kill(name)
                raise ControlPlaneError(f"{name} is not ready after {_PATIENCE:g} s: {self._last_words(name)}")
            if not is_ready:
                time.sleep(_LOOK)

    def kill(self, name: str) -> None:
        """End one without a chance to say goodbye."""
        self._running.discard(name)
        self._ask({"do": "kill", "name": name})

    def check(self) -> None:
        """Raises ControlPlaneError when one has ended that was started and not killed."""
        for name in sorted(self._running):
            code = self._ask({"do": "look", "name": name})["code"]
            if code is not None and name in self._running:
                how = f"exit status {code}" if code >= 0 else f"signal {-code}"
                raise ControlPlaneError(f"{name} has ended ({how}), start all anew: {self._last_words(name)}")

    def compact(self) -> None:
        """Have etcd forget its history, so that every older watch gets 410."""
        header = self._etcd("range", {"key": "AA=="})["header"]
        self._etcd("compaction", {"revision": header["revision"], "physical": True})

    def know(self, *accounts: Account) -> None:
        """Replace the accounts but the administrator; holds from the API server's next start on."""
        self._accounts = (ADMIN, *accounts)
        self._write_tokens()

    def _prepare(self) -> None:
        self._authority.server(("127.0.0.1", "localhost", "kubernetes.default.svc")).write(self._folder, "server")
        (self._folder / "service-account.key").write_bytes(flags.signing_key())
        self._write_tokens()

    def _write_tokens(self) -> None:
        path = self._folder / "tokens.csv"
        path.touch(mode=0o600)
        lines = [f'{one.token},{one.name},{one.name},"{",".join(one.groups)}"\n' for one in self._accounts]
        path.write_text("".join(lines))

    def _start_on_free_port(self, name: str) -> None:
        for attempt in range(_ATTEMPTS):
            if name == ETCD:
                self._etcd_port = _free_port()
            else:
                self._api_port = _free_port()
            try:
                self.start(name)
            except EndedAtOnce:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _is_ready(self, name: str) -> bool:
        try:
            match name:
                case "etcd":
                    return bool(self._etcd("maintenance/status", {}, timeout=_ANSWER))
                case "kube-apiserver":
                    return self._get_ready()
                case _:
                    return True
        except (OSError, http.client.HTTPException):
            return False

    def _get_ready(self) -> bool:
        connection = http.client.HTTPSConnection("127.0.0.1", self._api_port, context=self._tls, timeout=_ANSWER)
        with closing(connection):
            connection.request("GET", "/readyz", headers={"authorization": f"Bearer {ADMIN.token}"})
            return connection.getresponse().status == _OK

    def _etcd(self, call: str, body: Mapping[str, Any], *, timeout: float = _PATIENCE) -> Any:
        """Ask etcd by its JSON gateway."""
        connection = http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=timeout)
        with closing(connection):
            path = f"/v3/{call}" if call.startswith("maintenance") else f"/v3/kv/{call}"
            connection.request("POST", path, body=json.dumps(body))
            return json.loads(connection.getresponse().read())

    def _etcd_argv(self) -> list[str]:
        return [str(self._assets.etcd), *flags.etcd(folder=self._folder, port=self._etcd_port, peer=_free_port())]

    def _api_argv(self) -> list[str]:
        given = flags.api_server(folder=self._folder, port=self._api_port, etcd=self._etcd_port)
        return [str(self._assets.kube_apiserver), *given, *self._api_flags]

    def _manager_argv(self) -> list[str]:
        kubeconfig = self._folder / "controller-manager.json"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(flags.kubeconfig(url=self.url, authority=self.certificate, token=ADMIN.token))
        given = flags.controller_manager(folder=self._folder, kubeconfig=kubeconfig)
        return [str(self._assets.kube_controller_manager), *given]

    def _ask(self, command: Mapping[str, Any]) -> Any:
        if self._supervisor.stdin is None or self._supervisor.stdout is None:
            raise RuntimeError("the supervisor has no pipes")
        with self._asking:
            self._supervisor.stdin.write(json.dumps(command) + "\n")
            self._supervisor.stdin.flush()
            return json.loads(self._supervisor.stdout.readline())

    def _last_words(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(errors="replace").splitlines()
        return " / ".join(lines[-_TAIL:])

    def _end(self) -> None:
        # Closes the supervisor's input, which is what it waits for, and waits for it.
        with self._asking:
            self._supervisor.communicate()


def _free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
