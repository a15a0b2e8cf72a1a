"""SQL Server's error numbers, db-lib's, and what each means for a caller.

https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues
https://github.com/FreeTDS/freetds/blob/master/include/sybdb.h
"""

from __future__ import annotations

import re

UNIQUE_INDEX, UNIQUE_CONSTRAINT = 2601, 2627
DUPLICATE = {UNIQUE_INDEX, UNIQUE_CONSTRAINT}
DEADLOCK_VICTIM = 1205
LOCK_TIMEOUT = 1222
"""LOCK_TIMEOUT of the session ran out."""
SNAPSHOT_CONFLICT, SNAPSHOT_CHANGED = 3960, 3961
CONTENTION = {DEADLOCK_VICTIM, LOCK_TIMEOUT, SNAPSHOT_CONFLICT, SNAPSHOT_CHANGED}
"""Under XACT_ABORT each of them undoes the whole transaction."""
CHECK_VIOLATION = 547
MISSING = {207, 208}
"""Invalid column name, invalid object name."""
READ_ONLY = {
    3906,  # the database is read-only
    3908,  # … or in emergency mode
    978,  # a secondary replica takes only connections with ApplicationIntent=ReadOnly
}
NO_PERMISSION = {
    229,  # on the object
    230,  # on the column
    262,  # CREATE TABLE and the like
    297,  # to do this
    300,  # VIEW SERVER STATE and the like
    1088,  # cannot find the object, or no permission
    2760,  # the schema does not exist, or no permission to use it
    3701,  # cannot drop it, or no permission
    15247,  # user does not have permission
}
REFUSED = NO_PERMISSION | {
    911,  # the database does not exist
    916,  # this login may not use the database
    4060,  # cannot open the database that the login asked for
    4064,  # cannot open the login's default database
    18452,  # the login is from an untrusted domain
    18456,  # login failed
    18461,  # the server is in single-user mode
    18470,  # the account is disabled
    18486,  # the account is locked
    18487,  # the password has expired
    18488,  # the password must be changed
    40532,  # Azure: cannot open the server that the login asked for
    40615,  # Azure: the firewall does not allow this address
    20014,  # db-lib SYBEPWD: login incorrect
}
CAPACITY = {
    701,  # not enough memory for the query
    802,  # not enough memory in the buffer pool
    1101,  # no page left in the file group
    1105,  # no space left in the file group
    1204,  # no more locks
    1827,  # larger than the licence of this edition allows
    2628,  # text would be cut
    8152,  # … as older servers say it
    8645,  # no memory for the query within its time
    8651,  # no memory for the query as it is
    9002,  # the transaction log is full
    17809,  # no connection left
    40544,  # Azure: the database has reached its size
    40551,  # Azure: the session was ended for its use of tempdb
    40552,  # … of the log
    40553,  # … of memory
}
SYBETIME = 20003
"""db-lib: the login took longer than it may; or a time-out that someone else in the process set for all of db-lib."""
SYBEFCON = 20002
"""db-lib: connection failed."""
DB_LIB_LOST = {
    SYBEFCON,
    SYBETIME,
    20004,  # SYBEREAD
    20006,  # SYBEWRIT
    20009,  # SYBECONN: unable to connect
    20013,  # SYBEUHST: unknown host name
    20017,  # SYBESEOF: unexpected end of file from the server
    20020,  # SYBEBTOK: bad token in the data stream
    20047,  # SYBEDDNE: the connection is dead or not enabled
}
DISCONNECTED = DB_LIB_LOST | {
    596,  # the session is being killed
    921,  # the database has not been recovered yet
    922,  # the database is being recovered
    945,  # the database cannot be opened, for want of files or memory
    952,  # the database is in transition
    976,  # an availability group does not let anyone in at present
    983,  # … for its role is being settled
    6005,  # SHUTDOWN is in progress
    17142,  # the server is paused
    17188,  # the server is being started or shut down
    18401,  # the server is being upgraded
    18451,  # the server is being shut down; only administrators may connect
    # Azure's, which ask to come again:
    4221,  # the secondary is not ready yet
    10928,  # a resource limit was reached
    10929,  # … and others need the resource
    40143,
    40166,
    40197,  # the service met an error, as in a failover
    40501,  # the service is busy
    40540,
    40613,  # the database is not available at present
    42108,  # the pool of a serverless database is starting
    42109,
    49918,  # not enough resources to process the request
    49919,  # too many requests to create or change databases
    49920,  # too many operations under way
}
QUOTING = {
    241,
    245,
    248,
    *DUPLICATE,
    2628,
    8114,
    8115,
}
"""Errors whose text repeats a value."""
_DB_LIB = re.compile(r"DB-Lib error message (\d+), severity \d+:")
SYBESMSG = 20018
"""db-lib: look at the server's message."""
NOTHING_SAID = "Unknown error"
"""pymssql's text where a connection failed and neither the server nor db-lib said why: an unknown host."""


def number(error: BaseException) -> int:
    """The server's error number, or db-lib's where the server had no say; 0 for an error of pymssql's own.

    At the login pymssql repeats the number of an earlier failure in the process, unless the new one is more severe; the
    text then tells at least whether the server had a say.
    """
    found, text = _parts(error)
    codes = [int(code) for code in _DB_LIB.findall(text)]
    if codes and SYBESMSG not in codes:
        return codes[0]
    return SYBEFCON if text == NOTHING_SAID else found


def words(error: BaseException) -> str:
    """What the server said, in one line and without values; else what db-lib said."""
    found, text = number(error), _parts(error)[1]
    if found in QUOTING:
        return f"error {found}"
    said, *rest = _DB_LIB.split(text)
    if rest and (found in DB_LIB_LOST or not said):
        said = rest[1]
    said = " ".join(said.split())[:300]
    return f"error {found}: {said}" if found else said


def _parts(error: BaseException) -> tuple[int, str]:
    """The number and the text of a pymssql error: `((number, bytes),)`, or a text alone."""
    said = error.args[0] if error.args else ""
    found, text = said if isinstance(said, tuple) else (0, said)
    return found, text.decode(errors="replace") if isinstance(text, bytes) else str(text)
