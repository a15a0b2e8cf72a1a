"""A cancelled call of the async repository: its write has happened or never will, and the pool stays usable."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from chatkeep import AsyncChatMemoryRepository, Message, open_async_repository, open_repository
from tests import services

ROUNDS = 60


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("sqlite", "postgresql")])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    found = services.service_url(request.param)
    if not found.available:
        services.skip_or_fail(request.param, str(found.reason))
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'chat.db'}"
        return
    name = f"test_cancel_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(str(found.url), autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
        there = make_url(str(found.url)).update_query_dict({"search_path": name})
        open_repository(there, schema="migrate").close()
        yield there.render_as_string(hide_password=False)
        admin.execute(f"DROP SCHEMA {name} CASCADE")


async def _cancelled_after(steps: int, seconds: float, call: asyncio.Task[int]) -> bool:
    """Cancel after so many turns of the event loop and a little time; whether the cancellation arrived."""
    for _ in range(steps):
        await asyncio.sleep(0)
    if seconds:
        await asyncio.sleep(seconds)
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return True
    return False


def _moments() -> list[tuple[int, float]]:
    """Moments from before the first statement to after the last, more of them where statements are under way."""
    chance = random.Random(20)
    return [(step, 0.0) for step in range(20)] + [(0, chance.random() * 0.004) for _ in range(ROUNDS - 20)]


@pytest.mark.asyncio
async def test_appends(url: str) -> None:
    async with await open_async_repository(url, pool_size=2) as repository:
        stored = 0
        arrived = 0
        for number, (steps, seconds) in enumerate(_moments()):
            call = asyncio.create_task(repository.append("c", [Message.user(f"{number}a"), Message.user(f"{number}b")]))
            cancelled = await _cancelled_after(steps, seconds, call)
            now = await repository.count_messages("c")
            assert now - stored in ((0, 2) if cancelled else (2,))
            await asyncio.sleep(0.002)
            assert await repository.count_messages("c") == now, "it happened after its cancellation had arrived"
            stored = now
            arrived += cancelled
        assert arrived > 0
        await _is_usable(repository)


@pytest.mark.asyncio
async def test_replacements(url: str) -> None:
    async with await open_async_repository(url, pool_size=2) as repository:
        old = ["start"]
        await repository.save_all("c", [Message.user("start")])
        arrived = 0
        for number, (steps, seconds) in enumerate(_moments()):
            new = [f"{number}:{index}" for index in range(5)]
            call = asyncio.create_task(repository.save_all("c", [Message.user(text) for text in new]))
            cancelled = await _cancelled_after(steps, seconds, call)
            found = [message.text for message in await repository.find_by_conversation_id("c")]
            assert found in ([old, new] if cancelled else [new])
            await asyncio.sleep(0.002)
            assert [message.text for message in await repository.find_by_conversation_id("c")] == found
            old = found
            arrived += cancelled
        assert arrived > 0
        await _is_usable(repository)


async def _is_usable(repository: AsyncChatMemoryRepository) -> None:
    """More calls at once than connections: none has leaked."""
    async with asyncio.timeout(20):
        await asyncio.gather(*(repository.append("after", Message.user(str(number))) for number in range(20)))
    assert await repository.count_messages("after") == 20
