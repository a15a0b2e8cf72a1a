"""delete and purge: what is gone for good, so both say first or afterwards what it was."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from chatkeep.cli import output
from chatkeep.cli.browse import unknown
from chatkeep.cli.given import Debug, Owner, Url, given
from chatkeep.cli.text import count, one_line

if TYPE_CHECKING:
    from chatkeep.conversation import PurgeReport


def delete(
    ctx: typer.Context,
    conversation_id: Annotated[str, typer.Argument(metavar="ID", help="Which conversation.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask; needed where nobody can answer.")] = False,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Delete one conversation with all its messages."""
    here = given(ctx, url, owner, debug)
    if not yes and not output.is_terminal(sys.stdin):
        raise typer.BadParameter("there is no terminal to ask on; say --yes to delete", param_hint="--yes")
    with here.repository(reading=True) as repository:
        conversation = repository.get_conversation(conversation_id)
        if conversation is None:
            raise unknown(conversation_id, here)
        what = f"conversation {one_line(conversation_id)!r} with {count(conversation.message_count, 'message')}"
        if conversation.title:
            what += f", {one_line(conversation.title)!r}"
        if not yes and not typer.confirm(f"Delete {what}?", err=True):
            output.note("nothing deleted")
            raise typer.Exit(1)
        repository.delete_by_conversation_id(conversation_id)
    output.note(f"deleted {what}")


def purge(
    ctx: typer.Context,
    expired: Annotated[bool, typer.Option("--expired", help="Messages whose life is over.")] = False,
    idle: Annotated[
        str | None,
        typer.Option("--idle", metavar="DURATION", help="Conversations without a change for so long: 90d, 12h, P30D."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many in one transaction.")] = 1000,
    url: Url = None,
    owner: Owner = None,
    debug: Debug = False,
) -> None:
    """Delete physically, in bounded batches: expired messages, idle conversations, or both. One owner's only."""
    from chatkeep.config import parse_duration

    here = given(ctx, url, owner, debug)
    if not expired and idle is None:
        raise typer.BadParameter("say what to purge: --expired, --idle DURATION, or both", param_hint="--expired")
    if idle is not None and idle.strip().replace(".", "", 1).isdecimal() and float(idle):
        # Elsewhere a bare number means seconds; whoever types 90 here means days.
        raise typer.BadParameter(f"{idle} of what? Give a unit: {idle}d, {idle}h, {idle}s", param_hint="--idle")
    try:
        older_than = None if idle is None else parse_duration(idle)
    except ValueError as exc:
        raise typer.BadParameter(str(exc), param_hint="--idle") from exc
    if older_than is not None and older_than.total_seconds() < 0:
        raise typer.BadParameter("expected 0 or more", param_hint="--idle")
    with here.repository(reading=True) as repository:
        if expired:
            _say("expired", repository.purge_expired(batch_size=batch_size, dry_run=dry_run))
        if older_than is not None:
            _say(f"idle for {idle}", repository.purge_idle(older_than, batch_size=batch_size, dry_run=dry_run))


def _say(what: str, report: PurgeReport) -> None:
    verb = "would delete" if report.dry_run else "deleted"
    messages, conversations = count(report.messages, "message"), count(report.conversations, "conversation")
    output.line(f"{what}: {verb} {messages}, and with them {conversations} as a whole")
