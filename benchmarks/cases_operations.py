"""One append and one window read: beside hand-written code, async beside sync, in short and long conversations."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from benchmarks.measure import Row, Scale, compare, timed, timed_async
from benchmarks.messages import QUESTION, TURN, WINDOW, seed, turn
from benchmarks.places import Place
from chatkeep import Message, open_async_repository, open_repository

APPEND_REACH = {"postgresql": 1.5, "sqlite": 2.5, "mysql": 1.6, "mariadb": 1.6}
READ_REACH = {"postgresql": 2.0, "sqlite": 4.0, "mysql": 2.0, "mariadb": 2.0}
FLAT_REACH = 1.2

SHORT = 100
SHORT_ID, LONG_ID, WINDOW_ID = "short", "long", "window"


def prepare(place: Place, scale: Scale) -> None:
    """Store the conversations that are read and continued. The order leaves none but the last at an index's edge."""
    with open_repository(place.url) as repository:
        seed(repository, SHORT_ID, SHORT)
        seed(repository, LONG_ID, scale.long)
        seed(repository, WINDOW_ID, scale.window)
        for count in scale.exports:
            seed(repository, export_id(count), count)
    place.tidy()


def export_id(count: int) -> str:
    return f"export-{count}"


def appends(place: Place, scale: Scale) -> Iterator[Row]:
    for level in place.levels:
        with (
            open_repository(place.new_url(level)) as repository,
            contextlib.closing(place.handwritten(place.new_url(level))) as hand,
        ):
            repository.append("ours", Message.user(QUESTION))
            hand.start("theirs")
            yield compare(
                "append a turn of 2" + (f", synchronous={level}" if level else ""),
                (f"hand-written {hand.driver}", timed(lambda hand=hand: hand.append("theirs", TURN))),
                ("chatkeep", timed(lambda repository=repository: repository.append("ours", turn()))),
                scale.seconds,
                APPEND_REACH[place.backend],
            )


def window_read(place: Place, scale: Scale) -> Iterator[Row]:
    with open_repository(place.url) as repository, contextlib.closing(place.handwritten(place.url)) as hand:
        _check_equal(repository.find_by_conversation_id(WINDOW_ID, limit=WINDOW), hand.newest(WINDOW_ID))
        yield compare(
            f"read the newest {WINDOW} of {scale.window:,}",
            (f"hand-written {hand.driver}", timed(lambda: hand.newest(WINDOW_ID))),
            ("chatkeep", timed(lambda: repository.find_by_conversation_id(WINDOW_ID, limit=WINDOW))),
            scale.seconds,
            READ_REACH[place.backend],
        )


def flatness(place: Place, scale: Scale) -> Iterator[Row]:
    with open_repository(place.url) as repository:
        yield compare(
            f"append a turn at {scale.long:,} messages",
            (f"at {SHORT}", timed(lambda: repository.append(SHORT_ID, turn()))),
            (f"at {scale.long:,}", timed(lambda: repository.append(LONG_ID, turn()))),
            scale.seconds,
            FLAT_REACH,
        )
        yield compare(
            f"read the newest {WINDOW} of {scale.long:,}",
            (f"of {SHORT}", timed(lambda: repository.find_by_conversation_id(SHORT_ID, limit=WINDOW))),
            (f"of {scale.long:,}", timed(lambda: repository.find_by_conversation_id(LONG_ID, limit=WINDOW))),
            scale.seconds,
            FLAT_REACH,
        )


def asynchronous(place: Place, scale: Scale) -> Iterator[Row]:
    with open_repository(place.new_url()) as repository, asyncio.Runner() as runner:
        awaited = runner.run(open_async_repository(place.new_url()))
        repository.append("sync", Message.user(QUESTION))
        runner.run(awaited.append("async", Message.user(QUESTION)))
        yield compare(
            "append a turn, async",
            ("sync", timed(lambda: repository.append("sync", turn()))),
            ("async", timed_async(lambda: awaited.append("async", turn()), runner)),
            scale.seconds,
        )
        yield compare(
            f"read the newest {WINDOW}, async",
            ("sync", timed(lambda: repository.find_by_conversation_id("sync", limit=WINDOW))),
            ("async", timed_async(lambda: awaited.find_by_conversation_id("async", limit=WINDOW), runner)),
            scale.seconds,
        )
        runner.run(awaited.close())


def _check_equal(ours: list[Message], theirs: list[dict[str, object]]) -> None:
    """Both sides read the same rows; a benchmark of different work would say nothing."""
    if [message.id for message in ours] != [row["id"] for row in theirs] or len(ours) != WINDOW:
        raise AssertionError("the two sides read different messages")
