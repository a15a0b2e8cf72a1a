"""export, import and copy: the command line over chatkeep.transfer."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chatkeep.cli import output, progress
from chatkeep.cli.browse import KeepUnreadable, unknown
from chatkeep.cli.given import Debug, Owner, Url, given, place
from chatkeep.cli.text import count

if TYPE_CHECKING:
    from chatkeep.repository import ChatMemoryRepository
    from chatkeep.transfer import Difference, Tally

SHOWN_DIFFERENCES = 10

Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The format of a provider or framework: openai, openai-responses, anthropic, langchain4j, spring-ai, "
        "spring-ai-redis. Without it, chatkeep's own, which keeps everything.",
        show_default=False,
    ),
]


def export(
    ctx: typer.Context,
    conversation_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Only these conversations.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file; it appears when complete.")
    ] = None,
    format: Format = None,
    drop_unsupported: Annotated[
        bool, typer.Option("--drop-unsupported", help="Leave out what --format can't say, instead of failing.")
    ] = False,
    keep_unreadable: KeepUnreadable = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Write conversations as JSON Lines: a line for each conversation, then one for each of its messages.

    One owner's conversations; `import` reads them, also into another kind of database. With --format a line is a
    conversation in that format (of Spring AI: a row), which most formats tell without ids and times.
    """
    if drop_unsupported and format is None:
        raise typer.BadParameter(
            "is for --format: chatkeep's own form keeps everything", param_hint="--drop-unsupported"
        )
    here = given(ctx, url, owner, debug)
    with here.repository(reading=True, on_unreadable="keep" if keep_unreadable else None) as repository:
        for conversation_id in conversation_ids or ():
            if repository.get_conversation(conversation_id) is None:
                raise unknown(conversation_id, here)
        shown = progress.wanted(data_on_stdout=file is None)
        total = _message_count(repository, conversation_ids) if shown else None
        with _sink(file) as write, progress.bar("export", total, shown=shown) as advance:
            conversations = messages = 0
            for lines, new in _exported(repository, conversation_ids or None, format, drop_unsupported):
                for line in lines:
                    write(line)
                conversations, before, messages = conversations + new[0], messages, messages + new[1]
                if shown and messages // 100 > before // 100:
                    advance(messages, count(messages, "message"))
    if file is not None:
        output.note(f"{count(conversations, 'conversation')}, {count(messages, 'message')} written to {file}")


def _exported(
    repository: ChatMemoryRepository, ids: list[str] | None, format: str | None, drop: bool
) -> Iterator[tuple[list[bytes], tuple[int, int]]]:
    """Encoded lines that belong together, with the conversations and messages that they bring."""
    from chatkeep import transfer

    if format is None:
        for line in transfer.export_lines(repository, ids):
            yield [transfer.encode_line(line)], (1, 0) if line["type"] == "conversation" else (0, 1)
        return
    made = transfer.export_documents(
        repository, format, ids, drop_unsupported=drop, hint="--drop-unsupported lets it go"
    )
    for lines, messages in made:
        yield [transfer.encode_line(line) for line in lines], (1, messages)


def import_(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="What `export` wrote, or a file of --format; - is standard input.")
    ],
    format: Format = None,
    conversation: Annotated[
        str | None,
        typer.Option("--conversation", metavar="ID", help="The one conversation of a file that doesn't name it."),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=10_000, help="Messages in one append.")] = 200,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Store what `export` wrote, or conversations in the format of a provider or framework. Repeatable.

    Messages keep their ids, and none is stored twice. Stops at the first line that can't be used and keeps what came
    before it.
    """
    from chatkeep import transfer

    if conversation is not None and format is None:
        raise typer.BadParameter("is for --format: the lines of an export name theirs", param_hint="--conversation")
    here = given(ctx, url, owner, debug)
    tally = transfer.Tally()
    with _source(file) as (stream, length), here.repository(reading=False) as repository:
        shown = file != "-" and progress.wanted(data_on_stdout=False)
        with progress.bar("import", length, shown=shown) as advance:
            done = 0

            def lines() -> Iterator[bytes]:
                nonlocal done
                for line in stream:
                    done += len(line)
                    yield line

            def report(so_far: Tally) -> None:
                advance(done, count(so_far.messages, "message"))

            try:
                if format is None:
                    transfer.import_lines(repository, lines(), batch=batch, tally=tally, progress=report)
                else:
                    transfer.import_documents(
                        repository,
                        lines(),
                        format,
                        conversation_id=conversation,
                        batch=batch,
                        tally=tally,
                        progress=report,
                    )
            except BaseException:
                if tally.messages:
                    output.note(f"kept {count(tally.messages, 'message')}; repeat the import, nothing is stored twice")
                raise
    output.note(f"imported {_summary(tally)}")


def copy(
    ctx: typer.Context,
    source_url: Annotated[str, typer.Argument(metavar="FROM-URL", help="Where the conversations are.")],
    target_url: Annotated[str, typer.Argument(metavar="TO-URL", help="Where they go; its schema must be there.")],
    keep_unreadable: KeepUnreadable = False,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Copy an owner's conversations from one database to another, and check the counts. Repeatable."""
    from chatkeep import transfer
    from chatkeep.errors import ConfigurationError

    here = given(ctx, None, owner, debug)
    source_place, target_place = (place(here.settings(url)) for url in (source_url, target_url))
    if source_place == target_place:
        raise ConfigurationError(f"source and target are the same, {source_place}: nothing to copy")
    unreadable = "keep" if keep_unreadable else None
    tally = transfer.Tally()
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(here.repository(url=source_url, reading=True, on_unreadable=unreadable))
        target = stack.enter_context(here.repository(url=target_url, reading=False))
        shown = progress.wanted(data_on_stdout=False)
        total = _message_count(source, None) if shown else None
        with progress.bar("copy", total, shown=shown) as advance:

            def report(so_far: Tally) -> None:
                advance(so_far.messages, count(so_far.messages, "message"))

            try:
                transfer.copy(source, target, tally=tally, progress=report)
            except BaseException:
                if tally.messages:
                    output.note(f"copied {count(tally.messages, 'message')}; repeat the copy, none is stored twice")
                raise
        with progress.bar("verify", tally.conversations, shown=shown):
            different = list(transfer.compare(source, target))
    whose = f"owner {source.owner!r}" if source.owner else "no owner"
    output.note(f"copied {_summary(tally)} of {whose} from {source_place} to {target_place}")
    _judge(different)


def _judge(different: list[Difference]) -> None:
    missing = [one for one in different if one.target < one.source]
    for one in different[:SHOWN_DIFFERENCES]:
        output.note(
            f"conversation {one.conversation_id!r}: {count(one.source, 'message')} at the source, "
            f"{one.target:,} at the target"
        )
    if len(different) > SHOWN_DIFFERENCES:
        output.note(f"… and {len(different) - SHOWN_DIFFERENCES:,} more")
    if missing:
        lost = sum(one.source - one.target for one in missing)
        output.error(
            f"{count(lost, 'message')} of {count(len(missing), 'conversation')} did not arrive; repeat the copy, "
            f"and look for writers that delete at the target"
        )
        raise typer.Exit(1)
    if different:
        output.note("verified: all messages of the source are there; the target held more in these conversations")
    else:
        output.note("verified: the same number of messages in every conversation")


def _summary(tally: Tally) -> str:
    parts = [
        f"{count(tally.messages, 'message')} in {count(tally.conversations, 'conversation')}, {tally.new:,} of them new"
    ]
    if tally.expired:
        parts.append(f"{count(tally.expired, 'expired message')} left out")
    return "; ".join(parts)


def _message_count(repository: ChatMemoryRepository, ids: Iterable[str] | None) -> int:
    from chatkeep.transfer.reading import chosen

    return sum(conversation.message_count for conversation in chosen(repository, ids or None))


@contextlib.contextmanager
def _source(file: str) -> Iterator[tuple[Iterable[bytes], int | None]]:
    """The lines of a file or of standard input, with the length where it is known."""
    if file == "-":
        yield sys.stdin.buffer, None
        return
    with Path(file).open("rb") as stream:
        status = os.fstat(stream.fileno())
        yield stream, status.st_size if stat.S_ISREG(status.st_mode) else None


@contextlib.contextmanager
def _sink(file: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Standard output, or a file that takes its name only when all is written; a pipe or device directly."""
    if file is None:
        yield output.write
        return
    if file.exists() and not file.is_file():
        with file.open("wb") as direct:
            yield direct.write
        return
    file = file.resolve()
    try:
        # Made readable for its owner only: a transcript is nobody else's business.
        handle = tempfile.NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}.", delete=False)  # noqa: SIM115
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, str(file)) from exc
    try:
        with handle:
            yield handle.write
        Path(handle.name).replace(file)
    except BaseException:
        Path(handle.name).unlink(missing_ok=True)
        raise
