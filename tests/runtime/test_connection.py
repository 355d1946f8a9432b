"""Which connection is closed at the limit, by its state and by its peer's share."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from unittest.mock import Mock

import pytest

from upgrade_manager.runtime import connection_limit
from upgrade_manager.runtime.connection import Connection, State
from upgrade_manager.runtime.connection_limit import ConnectionLimit
from upgrade_manager.runtime.peers import Peers

LIMIT = 4
#: Addresses of strangers, and of two API servers.
A, B, C, API, API2 = "10.52.0.1", "10.52.0.2", "10.52.0.3", "10.53.0.1", "10.53.0.2"
CLOSING, SLOW, SILENT, IDLE, BUSY = State


def connect(limit: ConnectionLimit, host: str, state: State = SILENT) -> Connection:
    """Open a connection, and bring it into the state."""
    is_closed = False
    transport = Mock(get_extra_info=Mock(return_value=(host, 1)), is_closing=lambda: is_closed)
    connection = Connection(limit, Mock(), tls=None)
    connection.connection_made(transport)
    if state is not SILENT and not transport.abort.called:
        connection.data_received(b"GET")
    if state in {IDLE, BUSY, CLOSING}:
        connection.begin(Mock(content=Mock(is_eof=Mock(return_value=True))))
    if state in {IDLE, CLOSING}:
        connection.end_request()
    is_closed = state is CLOSING
    assert connection.state is state or transport.abort.called
    return connection


@pytest.mark.rule("security: connections are limited for each peer, and API servers go last")
@pytest.mark.parametrize(
    ("held", "new", "closed"),
    [
        pytest.param([(A, BUSY), (A, IDLE), (A, SILENT), (A, SLOW)], A, 3, id="slow first"),
        pytest.param([(A, BUSY), (A, IDLE), (A, SLOW), (A, CLOSING)], A, 3, id="closing before slow"),
        pytest.param([(A, BUSY), (A, IDLE), (A, SILENT), (A, SILENT)], A, 2, id="then the oldest silent"),
        pytest.param([(A, BUSY), (A, IDLE), (A, BUSY), (A, IDLE)], A, 1, id="then the oldest idle"),
        pytest.param([(A, BUSY), (A, BUSY), (A, BUSY), (A, BUSY)], A, 4, id="busy: the new one"),
        pytest.param([(A, BUSY), (A, BUSY), (A, BUSY), (A, BUSY)], B, 0, id="busy of a larger share"),
        pytest.param([(A, BUSY), (A, BUSY), (B, SLOW), (B, SLOW)], B, 2, id="own share is the largest"),
        pytest.param([(A, BUSY), (A, IDLE), (A, IDLE), (B, SLOW)], B, 1, id="other share is larger"),
        pytest.param([(A, BUSY), (A, BUSY), (B, IDLE), (C, SLOW)], B, 2, id="equal shares"),
        pytest.param([(API, SLOW), (API, IDLE), (A, BUSY), (A, BUSY)], API, 2, id="busy stranger for an API server"),
        pytest.param([(API, SLOW), (API, IDLE), (API, IDLE), (API, SILENT)], A, 4, id="stranger among API servers"),
        pytest.param([(API, SLOW), (API, IDLE), (API, IDLE), (API2, IDLE)], API2, 0, id="API servers among themselves"),
        pytest.param([(API, BUSY), (API, BUSY), (API, BUSY), (API2, IDLE)], API2, 4, id="busy API servers"),
    ],
)
async def test_connection_that_is_closed_at_the_limit(
    held: Sequence[tuple[str, State]], new: str, closed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limit, "MAX_CONNECTIONS", LIMIT)
    peers = Peers()
    peers.api_servers = frozenset({ip_address(API), ip_address(API2)})
    limit = ConnectionLimit(peers)
    connections = [connect(limit, host, state) for host, state in held]
    connections.append(connect(limit, new))
    aborted = [number for number, one in enumerate(connections) if one._accepted.abort.called]  # type: ignore[attr-defined]
    assert aborted == [closed]
    for connection in connections:
        connection.connection_lost(None)


@pytest.mark.parametrize("state", list(State))
async def test_only_a_slow_connection_gets_a_response(state: State) -> None:
    connection = connect(ConnectionLimit(Peers()), A, state)
    connection.end()
    written = connection._accepted.write.call_args_list  # type: ignore[attr-defined]
    assert len(written) == (1 if state is SLOW else 0)


async def test_request_of_a_lost_connection_is_handled_untracked() -> None:
    limit = ConnectionLimit(Peers())
    response = Mock()

    async def handle(_: object) -> Mock:
        return response

    server = Mock(request_handler=handle)
    limit.track(server)
    assert await server.request_handler(Mock(protocol=Mock())) is response
