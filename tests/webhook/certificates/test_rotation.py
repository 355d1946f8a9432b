"""The self-made certificate: several replicas, renewal, skewed clocks, and what users break."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from hack.control_plane.certificates import Authority
from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.webhook.webhook_certificates import NAMESPACE, RENEWAL, Replicas, new_pair, verify
from upgrade_manager.kube.patch import JsonPatch, MergePatch
from upgrade_manager.kube.resources import SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from upgrade_manager.runtime.healthz import Unhealthy
from webhook.certificates.pair import Pair
from webhook.certificates.rotation import CONFIGURATION, INTERVAL, PROPAGATION, SECRET, CertificateRotation

#: Seconds after which a change by a user is repaired.
REPAIR = INTERVAL + PROPAGATION + 5
TLS, DOCKER = ({"type": f"kubernetes.io/{type_}"} for type_ in ("tls", "dockerconfigjson"))
BROKEN = {"tls.crt": "AAAA", "tls.key": "AAAA", "ca.crt": "AAAA"}
NO_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    async with Simulation(actors=False) as simulation:
        yield Replicas(simulation)


@asynccontextmanager
async def running(*rotations: CertificateRotation) -> AsyncIterator[None]:
    """Run replicas, from the time at which they have repaired what they found."""
    tasks = [asyncio.create_task(rotation.run()) for rotation in rotations]
    try:
        await asyncio.sleep(REPAIR)
        yield
        assert [task for task in tasks if task.done()] == []
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def encoded(texts: dict[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}


def data_of(pair: Pair) -> dict[str, str]:
    """Return the data of the pair's Secret."""
    return encoded({"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": pair.authority})


async def store(replicas: Replicas, data: dict[str, str]) -> None:
    """Change the Secret's data, as another replica or a user does."""
    client = replicas.simulation.client()
    await client.patch(SECRETS, SECRET, MergePatch({"data": data}), namespace=NAMESPACE)


async def set_bundle(replicas: Replicas, value: str) -> None:
    """Change the caBundle as a user does."""
    operation = {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": value}
    client = replicas.simulation.client()
    await client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION, JsonPatch([operation]))


async def test_first_certificate_is_trusted_in_every_webhook(replicas: Replicas) -> None:
    await replicas.install("", "rubbish")
    replica = replicas.replica()
    async with running(replica):
        pair = await replicas.stored()
        assert await replicas.bundles() == [pair.authority, pair.authority]
        assert await replicas.call(replica) == ""
        await replica.check()
        found = await replicas.simulation.client().get(SECRETS, SECRET, namespace=NAMESPACE)
        assert sorted(found["data"]) == ["ca.crt", "tls.crt", "tls.key"]


@pytest.mark.rule("admission: replicas agree on one certificate, also when they start at once")
async def test_replicas_that_start_at_once_agree(replicas: Replicas) -> None:
    await replicas.install()
    started = [replicas.replica(seed) for seed in range(3)]
    async with running(*started):
        pair = await replicas.stored()
        assert len(replicas.issued) == 3
        assert [await replicas.call(replica) for replica in started] == ["", "", ""]
        assert [verify(await one.context(), pair.authority, now=replicas.now()) for one in started] == ["", "", ""]
    later = replicas.replica(9)
    await later.rotate()
    assert (len(replicas.issued), await replicas.call(later)) == (3, "")


async def test_replica_without_a_valid_certificate_is_not_ready(replicas: Replicas) -> None:
    await replicas.install(new_pair(replicas.now()).authority)
    replica = replicas.replica()
    with pytest.raises(Unhealthy, match="webhook has no valid certificate: not made yet"):
        await replica.check()
    assert await replicas.call(replica) != ""
    await replica.rotate()
    await replica.check()
    replicas.shift = timedelta(days=400)
    with pytest.raises(Unhealthy, match="webhook has no valid certificate"):
        await replica.check()


async def test_error_of_the_api_server_is_retried(replicas: Replicas) -> None:
    await replicas.install()
    rule = Rule(match=Match(resource="secrets"), action=Refuse(status=403, reason="Forbidden"))
    replicas.simulation.middleware.add(rule)
    replica = replicas.replica()
    async with running(replica):
        with pytest.raises(Unhealthy, match=f"webhook has no valid certificate: get secrets {NAMESPACE}/{SECRET}: 403"):
            await replica.check()
        replicas.simulation.middleware.remove(rule)
        await asyncio.sleep(REPAIR)
        assert await replicas.call(replica) == ""


@pytest.mark.rule("admission: a missing Secret is reported with the command that creates it")
async def test_missing_secret_is_reported_until_it_is_created(replicas: Replicas) -> None:
    await replicas.install_configuration()
    replica = replicas.replica()
    create = f"kubectl create secret generic {SECRET} -n {NAMESPACE}"
    message = f"Secret {NAMESPACE}/{SECRET} does not exist. Create it: {create}"
    async with running(replica):
        with pytest.raises(Unhealthy, match=f"^webhook has no valid certificate: {message}$"):
            await replica.check()
        await replicas.install_secret()
        await asyncio.sleep(REPAIR)
        assert await replicas.call(replica) == ""


async def test_webhook_is_served_before_it_is_installed(replicas: Replicas) -> None:
    await replicas.install_secret()
    replica = replicas.replica()
    async with running(replica):
        await replica.check()
        await replicas.install_configuration()
        await asyncio.sleep(REPAIR)
        assert await replicas.call(replica) == ""


@pytest.mark.rule("admission: a certificate that is invalid, expired or not yet valid is replaced")
@pytest.mark.parametrize(
    ("data", "fields", "foreign"),
    [
        pytest.param(None, {}, "", id="no data"),
        pytest.param({"tls.crt": "AAAA", "tls.key": "", "ca.crt": "////"}, TLS, "", id="bytes"),
        pytest.param({".dockerconfigjson": "e30="}, DOCKER, "", id="another type"),
        *(pytest.param({}, {}, field, id=f"{field} of another pair") for field in BROKEN),
    ],
)
async def test_invalid_secret_is_replaced(replicas: Replicas, data: Any, fields: dict[str, Any], foreign: str) -> None:
    await replicas.install_configuration()
    if foreign:
        data = data_of(new_pair(replicas.now())) | {foreign: data_of(new_pair(replicas.now()))[foreign]}
    await replicas.install_secret(data, **fields)
    replica = replicas.replica()
    async with running(replica):
        assert await replicas.call(replica) == ""
        await replicas.stored()


@pytest.mark.thin
@pytest.mark.parametrize("data", [None, BROKEN], ids=["deleted", "broken"])
async def test_pair_is_served_without_its_secret_and_stored_again(replicas: Replicas, data: Any) -> None:
    await replicas.install()
    replica = replicas.replica()
    async with running(replica):
        before = await replicas.stored()
        if data is None:
            await replicas.simulation.client().delete(SECRETS, SECRET, namespace=NAMESPACE)
            await asyncio.sleep(REPAIR)
            await replica.check()
            assert await replicas.call(replica) == ""
            await replicas.install_secret()
        else:
            await store(replicas, data)
        await asyncio.sleep(REPAIR)
        assert (await replicas.stored(), len(replicas.issued)) == (before, 1)
        assert await replicas.call(replica) == ""


@pytest.mark.thin
@pytest.mark.rule("admission: a changed caBundle is written again")
@pytest.mark.parametrize("value", ["", *encoded({"a": "rubbish", "b": NO_CERTIFICATE}).values(), "////"])
async def test_changed_ca_bundle_is_written_again(replicas: Replicas, value: str) -> None:
    await replicas.install()
    replica = replicas.replica()
    async with running(replica):
        await set_bundle(replicas, value)
        assert await replicas.call(replica) != ""
        await asyncio.sleep(REPAIR)
        assert await replicas.call(replica) == ""


async def test_foreign_ca_is_removed_from_the_bundle(replicas: Replicas) -> None:
    await replicas.install(Authority(now=replicas.now()).certificate.decode())
    async with running(replicas.replica()):
        assert await replicas.bundles() == [(await replicas.stored()).authority]


@pytest.mark.thin
@pytest.mark.rule("admission: a certificate that is invalid, expired or not yet valid is replaced")
@pytest.mark.parametrize("clock_error", [timedelta(days=400), timedelta(days=-2)], ids=["ahead", "behind"])
async def test_certificate_of_a_wrong_clock_is_replaced(replicas: Replicas, clock_error: timedelta) -> None:
    await replicas.install()
    wrong = replicas.replica(1, clock_error=clock_error)
    await wrong.rotate()
    replica = replicas.replica(2)
    async with running(replica):
        assert (await replicas.call(replica), len(replicas.issued)) == ("", 2 if clock_error > timedelta() else 1)


@pytest.mark.full
async def test_replica_with_a_wrong_clock_does_not_disturb_another(replicas: Replicas) -> None:
    await replicas.install()
    wrong, right = replicas.replica(1, clock_error=timedelta(days=400)), replicas.replica(2)
    async with running(wrong, right):
        for _ in range(40):
            await asyncio.sleep(INTERVAL / 4)
            assert await replicas.call(right) == ""
    assert len(replicas.issued) <= 3


@pytest.mark.full
@pytest.mark.parametrize("clock_error", [timedelta(minutes=59), timedelta(minutes=-59)])
async def test_clock_with_a_small_error_does_not_matter(replicas: Replicas, clock_error: timedelta) -> None:
    await replicas.install()
    started = [replicas.replica(1, clock_error=clock_error), replicas.replica(2)]
    async with running(*started):
        await asyncio.sleep(10 * INTERVAL)
        assert [await replicas.call(replica) for replica in started] == ["", ""]
        assert len(replicas.issued) == 2


@pytest.mark.rule("admission: a certificate that is invalid, expired or not yet valid is replaced")
async def test_expired_certificate_is_replaced(replicas: Replicas) -> None:
    await replicas.install()
    await replicas.replica().rotate()
    replicas.shift = timedelta(days=366)
    replica = replicas.replica()
    async with running(replica):
        assert (await replicas.call(replica), len(replicas.issued)) == ("", 2)


async def test_certificate_is_renewed_at_two_thirds_of_its_life(replicas: Replicas) -> None:
    await replicas.install()
    replica = replicas.replica()
    await replica.rotate()
    replicas.shift = RENEWAL - timedelta(days=2)
    served = replica._context
    await replica.rotate()
    assert (len(replicas.issued), replica._context) == (1, served)
    replicas.shift = RENEWAL
    await replica.rotate()
    assert (len(replicas.issued), await replicas.call(replica)) == (2, "")


@pytest.mark.full
async def test_ca_bundle_does_not_grow_without_limit(replicas: Replicas) -> None:
    await replicas.install()
    replica = replicas.replica()
    for _ in range(6):
        await replica.rotate()
        replicas.shift += RENEWAL
    (bundle,) = await replicas.bundles()
    assert bundle.count("BEGIN CERTIFICATE") == 4
    assert bundle.startswith(replicas.issued[-1].authority)


async def test_restored_pair_is_trusted_before_it_is_served(replicas: Replicas) -> None:
    await replicas.install()
    replica = replicas.replica()
    await replica.rotate()
    await store(replicas, data_of(new_pair(replicas.now())))
    (before,) = await replicas.bundles()
    rotation = asyncio.create_task(replica.rotate())
    await asyncio.sleep(PROPAGATION - 1)
    assert verify(await replica.context(), before, now=replicas.now()) == ""
    await rotation
    assert verify(await replica.context(), before, now=replicas.now()) != ""
    assert await replicas.call(replica) == ""


@pytest.mark.rule("admission: a changed caBundle is written again")
async def test_served_certificate_is_trusted_before_its_successor(replicas: Replicas) -> None:
    """A manifest without a caBundle is applied just before another replica's pair is served."""
    await replicas.install()
    replica = replicas.replica()
    await replica.rotate()
    await store(replicas, data_of(new_pair(replicas.now())))
    await set_bundle(replicas, "")
    rotation = asyncio.create_task(replica.rotate())
    await asyncio.sleep(PROPAGATION - 1)
    assert await replicas.call(replica) == ""
    await rotation
    assert await replicas.call(replica) == ""


@pytest.mark.rule("admission: no request fails while the certificate is renewed")
@pytest.mark.parametrize("calls", [230, pytest.param(2000, marks=pytest.mark.full)])
async def test_no_request_fails_while_replicas_renew(replicas: Replicas, calls: int) -> None:
    """Call three replicas in turn, one call a second, while the certificate is renewed every 150 seconds."""
    await replicas.install()
    started = [replicas.replica(seed) for seed in range(3)]
    failures = []
    async with running(*started):
        bundles = await replicas.bundles() * 3
        for number in range(calls):
            if number % 150 == 0:
                replicas.shift += RENEWAL
            # The API server works with the caBundle of three seconds ago.
            bundles = [*bundles[1:], *await replicas.bundles()]
            await asyncio.sleep(1)
            if error := verify(await started[number % 3].context(), bundles[0], now=replicas.now()):
                failures.append(f"call {number}: {error}")
        assert failures == []
        assert len(replicas.issued) > calls // 150


async def test_unchanged_certificate_is_not_loaded_again(replicas: Replicas) -> None:
    await replicas.install()
    replica = replicas.replica()
    await replica.rotate()
    served = replica._context
    await replica.rotate()
    assert replica._context is served
    assert served is not None
