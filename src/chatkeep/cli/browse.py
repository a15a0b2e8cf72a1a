"""ls and show: conversations for people on a terminal, plain columns in a pipe, JSON Lines on request."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from chatkeep.cli import output
from chatkeep.cli.given import Debug, Given, Owner, Url, given
from chatkeep.cli.text import count, local, one_line

if TYPE_CHECKING:
    from chatkeep.conversation import Conversation, HistoryEntry
    from chatkeep.repository import ChatMemoryRepository

PAGE = 200
SCREEN = 50
"""Rows on a terminal unless --limit or --all says otherwise."""

KeepUnreadable = Annotated[
    bool, typer.Option("--keep-unreadable", help="Go on over rows that can't be read, and show them as they are.")
]
Json = Annotated[bool, typer.Option("--json", help="JSON Lines, streamed.")]


class Order(StrEnum):
    """The orders of list_conversations."""

    id = "id"
    updated = "updated"


def ls(
    ctx: typer.Context,
    order: Annotated[Order, typer.Option(help="By id, or the last changed first.")] = Order.updated,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help=f"At most so many; default {SCREEN} on a terminal, else all."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them, also on a terminal.")] = False,
    cursor: Annotated[
        str | None, typer.Option("--cursor", metavar="TEXT", help="Go on where a page before this one ended.")
    ] = None,
    as_json: Json = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """List the conversations of an owner: id, title, messages, last change."""
    if everything and limit is not None:
        raise typer.BadParameter("give either --all or --limit", param_hint="--limit")
    here = given(ctx, url, owner, debug)
    for_people = output.is_terminal(sys.stdout) and not as_json
    wanted = limit if limit is not None or everything or not for_people else SCREEN
    with here.repository(reading=True) as repository:
        pages = _pages(repository, "id" if order is Order.id else "updated", wanted, cursor)
        if for_people:
            _print_table(pages, here)
        else:
            _print_lines(pages, as_json)


def show(
    ctx: typer.Context,
    conversation_id: Annotated[str, typer.Argument(metavar="ID", help="Which conversation.", show_default=False)],
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the newest N messages.")] = None,
    as_json: Json = False,
    keep_unreadable: KeepUnreadable = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Print one conversation as a transcript."""
    from chatkeep.transfer.reading import encode_line, message_line

    here = given(ctx, url, owner, debug)
    with here.repository(reading=True, on_unreadable="keep" if keep_unreadable else None) as repository:
        conversation = repository.get_conversation(conversation_id)
        if conversation is None:
            raise unknown(conversation_id, here)
        found = newest(repository, conversation_id, limit)
        if as_json:
            for entry in found:
                output.write(encode_line({**message_line(conversation_id, entry), "position": entry.position}))
            return
        from chatkeep.cli.transcript import Transcript

        transcript = Transcript(output.console(), wrap=output.is_terminal(sys.stdout))
        transcript.begin(conversation)
        for entry in found:
            transcript.add(entry)
        transcript.end()


def unknown(conversation_id: str, here: Given) -> Exception:
    """The error of an id that is not there."""
    from chatkeep.errors import ConversationNotFoundError

    whose = f" of owner {here.owner!r}" if here.owner else ""
    hint = "" if here.owner else ", and --owner chooses whose"
    return ConversationNotFoundError(
        f"there is no conversation {conversation_id!r}{whose}; `chatkeep ls` lists them{hint}"
    )


def newest(repository: ChatMemoryRepository, conversation_id: str, limit: int | None) -> Iterator[HistoryEntry]:
    """The newest `limit` messages, oldest first; all of them, page by page, without a limit."""
    from chatkeep.transfer.reading import entries

    if limit is None:
        yield from entries(repository, conversation_id)
        return
    # Back from the end for the position where the newest N begin, then forward, so that memory stays flat.
    first, missing, cursor = 0, limit, None
    bound: str | int = 2**63 - 1
    while missing:
        page = repository.history(conversation_id, before=cursor or bound, limit=min(missing, PAGE))
        missing -= len(page.items)
        first = page.items[0].position if page.items else first
        cursor = page.next_cursor
        if cursor is None:
            break
    yield from entries(repository, conversation_id, after=first - 1 if first else None)


def _pages(
    repository: ChatMemoryRepository, order: Literal["id", "updated"], limit: int | None, cursor: str | None
) -> Iterator[tuple[list[Conversation], str | None]]:
    """Pages with the cursor that goes on behind each."""
    left = limit
    while left is None or left > 0:
        wanted = PAGE if left is None else min(PAGE, left)
        try:
            page = repository.list_conversations(limit=wanted, cursor=cursor, order=order)
        except ValueError as exc:
            raise typer.BadParameter(str(exc), param_hint="--cursor") from exc
        yield page.items, page.next_cursor
        cursor = page.next_cursor
        if cursor is None:
            return
        left = None if left is None else left - len(page.items)


def _print_lines(pages: Iterable[tuple[list[Conversation], str | None]], as_json: bool) -> None:
    import msgspec

    from chatkeep.storage.jsontext import dump_json
    from chatkeep.times import format_time

    for conversation in itertools.chain.from_iterable(items for items, _ in pages):
        updated = format_time(conversation.updated_at)
        if as_json:
            data = msgspec.structs.asdict(conversation)
            data |= {"created_at": format_time(conversation.created_at), "updated_at": updated}
            output.write(dump_json(data).encode() + b"\n")
        else:
            title = one_line(conversation.title or "")
            output.line("\t".join((one_line(conversation.id), title, str(conversation.message_count), updated)))


def _print_table(pages: Iterable[tuple[list[Conversation], str | None]], here: Given) -> None:
    from rich.table import Table
    from rich.text import Text

    console = output.console()
    shown, width, more = 0, 0, None
    for items, cursor in pages:
        more = cursor
        if not shown:
            # Set by the first page, so that the columns of all pages stand below each other.
            longest = max((Text(one_line(item.id)).cell_len for item in items), default=2)
            width = min(max(longest, 2), max(10, console.width // 2 - 10))
        table = Table(box=None, pad_edge=False, show_header=not shown, header_style="bold", expand=True)
        table.add_column("id", width=width, overflow="fold", style="cyan")
        table.add_column("title", ratio=1, no_wrap=True, overflow="ellipsis")
        table.add_column("messages", width=9, justify="right")
        table.add_column("updated", width=16, no_wrap=True)
        for item in items:
            table.add_row(
                Text(one_line(item.id)),
                Text(one_line(item.title or "")),
                f"{item.message_count:,}",
                local(item.updated_at),
            )
        if items:
            console.print(table)
        shown += len(items)
    whose = f" of owner {here.owner!r}" if here.owner else ""
    if not shown:
        hint = "" if here.owner else "; --owner chooses whose are listed"
        output.note(f"no conversations{whose}{hint}")
    elif more is not None:
        output.note(f"{count(shown, 'conversation')}{whose}, and there are more: --all, or --cursor {more}")
