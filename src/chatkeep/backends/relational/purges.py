"""Retention on SQL engines: one bounded batch a call, each in a transaction of its own.

`before` is fixed by the caller for all batches of one purge, so that it ends although others go on writing.
"""

from __future__ import annotations

import datetime as dt

from chatkeep.backends.relational.session import Session
from chatkeep.backends.relational.writes import Head, delete_locked
from chatkeep.storage.record import Purged


def now(session: Session) -> dt.datetime:
    moment: dt.datetime = session.dialect.from_time(session.row(session.dialect.sql("SELECT_NOW"))[0])
    return moment


def purge_expired(session: Session, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
    """One conversation and up to `batch_size` of its messages."""
    dialect = session.dialect
    of = {"owner": owner, "before": dialect.to_time(before)}
    if dry_run:
        messages = session.row(dialect.sql("COUNT_EXPIRED"), of)[0]
        return Purged(messages, session.row(dialect.sql("COUNT_EXPIRED_CONVERSATIONS"), of)[0])
    found = session.row(dialect.sql("SELECT_EXPIRED_CONVERSATIONS"), {**of, "limit": 1})
    if found is None:
        return Purged()
    with session.transaction():
        row = session.row(dialect.sql("LOCK_CONVERSATION_KEY"), {"conversation_key": found[0]})
        if row is None:  # deleted by another since
            return Purged(more=True)
        head = Head(*row)
        deleted = session.run(
            dialect.sql("DELETE_EXPIRED"),
            {"conversation_key": head.key, "before": of["before"], "limit": batch_size},
        )
        head.message_count -= deleted
        if deleted and head.message_count == 0:
            session.defer(dialect.sql("DELETE_CONVERSATION"), {"conversation_key": head.key})
            return Purged(deleted, 1, more=True)
        session.defer(
            dialect.sql("UPDATE_CONVERSATION_COUNT"),
            {"conversation_key": head.key, "message_count": head.message_count},
        )
    return Purged(deleted, 0, more=True)


def purge_idle(session: Session, owner: str, before: dt.datetime, batch_size: int, dry_run: bool) -> Purged:
    """Up to `batch_size` conversations in one transaction, each only if it is still idle."""
    dialect = session.dialect
    of = {"owner": owner, "before": dialect.to_time(before)}
    if dry_run:
        conversations, messages = session.row(dialect.sql("COUNT_IDLE"), of)
        return Purged(int(messages), conversations)
    purged = Purged()
    with session.transaction():
        found = session.rows(dialect.sql("SELECT_IDLE_CONVERSATIONS"), {**of, "limit": batch_size})
        # In the order of keys, so that two purges can't wait for each other.
        for (key,) in sorted(found):
            row = session.row(
                dialect.sql("SELECT_IDLE_CONVERSATION"), {"conversation_key": key, "before": of["before"]}
            )
            if row is not None:
                delete_locked(session, key)
                purged.conversations += 1
                purged.messages += row[1]
    purged.more = len(found) == batch_size
    return purged
