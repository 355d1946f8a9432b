from __future__ import annotations

import asyncio

from upgrade_manager.pipeline.inquiries import PATIENCE, Inquiries


async def test_a_question_is_asked_once_a_minute_however_often_somebody_looks() -> None:
    inquiries, asked = Inquiries(), 0

    async def ask() -> str:
        nonlocal asked
        asked += 1
        return f"answer {asked}"

    for _ in range(5):
        assert await inquiries.answer("why", ask) == "answer 1"
        await asyncio.sleep(PATIENCE / 10)
    assert await inquiries.answer("why not", ask) == "answer 2"
    await asyncio.sleep(PATIENCE)
    assert await inquiries.answer("why", ask) == "answer 3"
    assert asked == 3


async def test_old_answers_are_forgotten() -> None:
    inquiries = Inquiries()

    async def ask() -> str:
        return ""

    for number in range(10):
        await inquiries.answer(f"question {number}", ask)
        await asyncio.sleep(PATIENCE)
    assert len(inquiries._answers) == 1
