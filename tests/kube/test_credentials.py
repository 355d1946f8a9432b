from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from upgrade_manager.kube.config import ClientConfig, ConfigError, TlsConfig
from upgrade_manager.kube.credentials import Authenticator


@dataclass
class Changing:
    """A source whose credentials are whatever the test says now."""

    scheme: str = "one"
    tls: TlsConfig = field(default_factory=TlsConfig)
    asked: list[float] = field(default_factory=list)
    error: ConfigError | None = None
    takes: float = 0

    async def load(self) -> ClientConfig:
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.takes)
        if self.error is not None:
            raise self.error
        return ClientConfig(server="https://x", tls=self.tls, source=self, authorization=self.scheme, max_age=60)


async def begun(source: Changing) -> Authenticator:
    login = await Authenticator.create(await source.load())
    source.asked.clear()
    return login


async def test_credentials_are_taken_anew_when_they_are_old() -> None:
    source = Changing()
    login = await begun(source)
    source.scheme = "two"
    await asyncio.sleep(59)
    assert (await login.credentials()).authorization == "one"
    await asyncio.sleep(1)
    assert (await login.credentials()).authorization == "two"
    await asyncio.sleep(59)
    await login.credentials()
    assert len(source.asked) == 1


async def test_what_has_not_changed_is_kept_and_so_are_its_connections() -> None:
    source = Changing()
    login = await begun(source)
    first = await login.credentials()
    await asyncio.sleep(61)
    assert await login.credentials() is first
    source.scheme = "two"
    await asyncio.sleep(61)
    second = await login.credentials()
    assert second is not first
    assert second.tls is first.tls
    source.tls = replace(source.tls, server_name="y")
    await asyncio.sleep(61)
    third = await login.credentials()
    assert (third.server_name, third.tls is second.tls) == ("y", False)


async def test_a_refusal_renews_once_for_all_and_not_again_within_ten_seconds() -> None:
    source = Changing()
    login = await begun(source)
    used = await login.credentials()
    source.scheme = "two"
    found = await asyncio.gather(*(login.renew(used) for _ in range(5)))
    assert {access.authorization for access in found} == {"two"}
    assert await login.renew(found[0]) is found[0]
    assert len(source.asked) == 1
    await asyncio.sleep(10)
    await login.renew(found[0])
    assert len(source.asked) == 2


async def test_a_slow_source_holds_up_one_request_only() -> None:
    source = Changing()
    login = await begun(source)
    source.takes = 20
    source.scheme = "two"
    await asyncio.sleep(61)
    first = asyncio.create_task(login.credentials())
    await asyncio.sleep(1)
    assert (await login.credentials()).authorization == "one"
    assert not first.done()
    assert (await first).authorization == "two"


@pytest.mark.parametrize("fault", ["source", "certificates"])
async def test_when_no_new_ones_can_be_had_the_old_stay(fault: str) -> None:
    source = Changing()
    login = await begun(source)
    used = await login.credentials()
    if fault == "source":
        source.error = ConfigError("no file")
    else:
        source.tls = TlsConfig(ca_data="rubbish")
    await asyncio.sleep(61)
    assert await login.credentials() is used
    assert await login.credentials() is used
    assert len(source.asked) == 1


async def test_a_token_that_no_header_may_carry_is_told() -> None:
    with pytest.raises(ConfigError, match="characters"):
        await begun(Changing(scheme="a\nb"))
