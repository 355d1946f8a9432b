"""Changes by others and refusals of policies pass; what lasts is reported."""

from __future__ import annotations

import asyncio

import pytest

from hack.faults.rules import Match, Refuse, Rule
from hack.simulation import Simulation
from tests.support.managers.upgrade import started
from upgrade_manager.kube.errors import Conflict, Forbidden, Invalid, KubeError, PreconditionFailed, Transient
from upgrade_manager.runtime.passing_errors import MAX_CONFLICTS, POLICY_START, PassingErrors

BY_POLICY = {"causes": [{"message": "refused"}]}


@pytest.mark.rule("permissions: the refusal of a policy that lasts is an error, after 40 s")
@pytest.mark.parametrize(
    ("lasts", "warnings"), [(30, []), (60, ["ReconcileError", "WriteRefused"])], ids=["passes", "lasts"]
)
async def test_policy_may_refuse_after_the_start_of_its_api_server(lasts: float, warnings: list[str]) -> None:
    message = "the kind of the policy's parameter is not found"
    policy = Refuse(status=422, reason="Invalid", message=message, details={"causes": [{"message": message}]})
    rule = Rule(match=Match(verbs=("create",), resource="services"), action=policy)
    async with Simulation() as simulation:
        simulation.middleware.add(rule)
        async with started(simulation) as stage:
            await stage.until_recorded("ISODownloading")
            await asyncio.sleep(lasts)
            simulation.middleware.remove(rule)
            await stage.until_recorded("ImagePreloading")
        assert [reason for reason, _ in await stage.warnings()] == warnings


@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(PreconditionFailed("changed"), MAX_CONFLICTS, id="changes by others"),
        pytest.param(Conflict("refused"), 0, id="conflict of a webhook"),
        pytest.param(Invalid("wrong field"), 0, id="schema"),
        pytest.param(Forbidden("refused", details=BY_POLICY), 0, id="policy without parameters"),
        pytest.param(Transient("lost"), 0, id="transient"),
    ],
)
def test_error_passes_so_many_times(error: KubeError, times: int) -> None:
    errors = PassingErrors()
    for _ in range(2):
        assert [errors.passes("uid", error) for _ in range(times + 1)] == [True] * times + [False]
        errors.clear("uid")


@pytest.mark.parametrize("end", ["cleared", "another plan's"])
async def test_refusal_passes_until_it_lasts(end: str) -> None:
    errors, refusal = PassingErrors(), Invalid("x", details=BY_POLICY)
    assert errors.passes("uid", refusal)
    await asyncio.sleep(POLICY_START - 0.1)
    assert errors.passes("uid", refusal)
    await asyncio.sleep(0.1)
    assert not errors.passes("uid", refusal)
    if end == "cleared":
        errors.clear("uid")
    else:
        errors.keep({"other"})
    assert errors.passes("uid", refusal)


@pytest.mark.parametrize(
    ("error", "before", "after"),
    [
        pytest.param(PreconditionFailed("changed"), True, False, id="changes by others"),
        pytest.param(Conflict("refused"), True, False, id="conflict of a webhook"),
        pytest.param(Transient("no response"), True, True, id="no response"),
        pytest.param(Forbidden("refused"), False, False, id="refusal"),
    ],
)
def test_error_may_pass_until_conflicts_have_lasted(error: KubeError, *, before: bool, after: bool) -> None:
    errors = PassingErrors()
    assert errors.may_pass("u", error) is before
    for _ in range(MAX_CONFLICTS):
        errors.passes("u", PreconditionFailed("changed"))
    assert errors.may_pass("u", error) is after
