from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from upgrade_manager.kube.config import ClientConfig, ConfigError, TlsConfig
from upgrade_manager.kube.credentials import Authenticator


@dataclass
class ChangingSource:
    """A source whose credentials a test changes."""

    authorization: str = "one"
    tls: TlsConfig = field(default_factory=TlsConfig)
    loads: list[float] = field(default_factory=list)
    error: ConfigError | None = None
    seconds: float = 0

    async def load(self) -> ClientConfig:
        self.loads.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        if self.error is not None:
            raise self.error
        return ClientConfig(server="https://x", tls=self.tls, source=self, authorization=self.authorization, max_age=60)


@pytest.fixture
def source() -> ChangingSource:
    return ChangingSource()


@pytest.fixture
async def authenticator(source: ChangingSource) -> AsyncIterator[Authenticator]:
    authenticator = await Authenticator.create(await source.load())
    source.loads.clear()
    yield authenticator
    await authenticator.aclose()


async def test_old_credentials_are_renewed(source: ChangingSource, authenticator: Authenticator) -> None:
    source.authorization = "two"
    await asyncio.sleep(59)
    assert (await authenticator.credentials()).headers == (("authorization", "one"),)
    await asyncio.sleep(1)
    assert (await authenticator.credentials()).headers == (("authorization", "two"),)
    await asyncio.sleep(59)
    await authenticator.credentials()
    assert len(source.loads) == 1


async def test_unchanged_credentials_are_kept(source: ChangingSource, authenticator: Authenticator) -> None:
    first = await authenticator.credentials()
    await asyncio.sleep(61)
    assert await authenticator.credentials() is first
    source.authorization = "two"
    await asyncio.sleep(61)
    second = await authenticator.credentials()
    assert second is not first
    assert second.tls is first.tls
    source.tls = replace(source.tls, server_name="y")
    await asyncio.sleep(61)
    third = await authenticator.credentials()
    assert (third.server_name, third.tls is second.tls) == ("y", False)


async def test_rejections_renew_once_in_ten_seconds(source: ChangingSource, authenticator: Authenticator) -> None:
    old = await authenticator.credentials()
    source.authorization = "two"
    renewed = await asyncio.gather(*(authenticator.renew(old) for _ in range(5)))
    assert {one.headers for one in renewed} == {(("authorization", "two"),)}
    assert await authenticator.renew(renewed[0]) is renewed[0]
    assert len(source.loads) == 1
    await asyncio.sleep(10)
    await authenticator.renew(renewed[0])
    assert len(source.loads) == 2


async def test_slow_source_delays_one_request_only(source: ChangingSource, authenticator: Authenticator) -> None:
    source.seconds = 20
    source.authorization = "two"
    await asyncio.sleep(61)
    first = asyncio.create_task(authenticator.credentials())
    await asyncio.sleep(1)
    assert (await authenticator.credentials()).headers == (("authorization", "one"),)
    assert not first.done()
    assert (await first).headers == (("authorization", "two"),)


@pytest.mark.parametrize("is_rejected", [True, False], ids=["rejected", "old"])
async def test_source_slower_than_a_request_succeeds(
    source: ChangingSource, authenticator: Authenticator, *, is_rejected: bool
) -> None:
    old = await authenticator.credentials()
    source.seconds = 58
    source.authorization = "two"
    await asyncio.sleep(61)
    for _ in range(13):
        try:
            async with asyncio.timeout(4.9):
                current = await (authenticator.renew(old) if is_rejected else authenticator.credentials())
        except TimeoutError:
            continue
        await asyncio.sleep(4.9)
    assert current.headers == (("authorization", "two"),)
    assert len(source.loads) == 1


async def test_closing_ends_a_renewal(source: ChangingSource, authenticator: Authenticator) -> None:
    source.seconds = 20
    await asyncio.sleep(61)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(authenticator.credentials(), 1)
    await authenticator.aclose()
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("broken", ["source", "certificates"])
async def test_old_credentials_stay_when_a_renewal_fails(
    source: ChangingSource, authenticator: Authenticator, broken: str
) -> None:
    old = await authenticator.credentials()
    if broken == "source":
        source.error = ConfigError("no file")
    else:
        source.tls = TlsConfig(ca_data="invalid")
    await asyncio.sleep(61)
    assert await authenticator.credentials() is old
    assert await authenticator.credentials() is old
    assert len(source.loads) == 1


async def test_repr_shows_no_token(authenticator: Authenticator) -> None:
    assert "one" not in repr(await authenticator.credentials())


async def test_token_with_control_characters_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="characters"):
        await Authenticator.create(await ChangingSource(authorization="a\nb").load())
