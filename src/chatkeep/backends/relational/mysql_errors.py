"""The error numbers of MySQL, MariaDB and their drivers, and what each says about a statement."""

from __future__ import annotations

import re

# https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html, …/client-error-reference.html
ER_CHECKREAD = 1020
"""Record has changed since last read: MariaDB's snapshot isolation."""
ER_LOCK_WAIT_TIMEOUT = 1205
ER_LOCK_DEADLOCK = 1213
ER_LOCK_NOWAIT = 3572
ER_TRANSACTION_ROLLBACK_DURING_COMMIT = 3101
"""Group replication found that another member won."""
CONTENTION = {
    ER_CHECKREAD,
    ER_LOCK_WAIT_TIMEOUT,
    ER_LOCK_DEADLOCK,
    ER_LOCK_NOWAIT,
    ER_TRANSACTION_ROLLBACK_DURING_COMMIT,
}
"""Of these, 1205 undoes only its statement; the session rolls the rest back before it tries again."""
ER_DUP_ENTRY = 1062
ER_QUERY_INTERRUPTED = 1317
ER_QUERY_TIMEOUT = 3024
ER_STATEMENT_TIMEOUT = 1969
"""MariaDB's max_statement_time ran out."""
TIMEOUT = {ER_QUERY_INTERRUPTED, ER_QUERY_TIMEOUT, ER_STATEMENT_TIMEOUT}
TIMED_OUT = "timed out"
"""How PyMySQL ends a CR_SERVER_LOST that its own time-out caused."""
CR_CONNECTION_ERROR, CR_CONN_HOST_ERROR, CR_SERVER_GONE, CR_SERVER_LOST = 2002, 2003, 2006, 2013
DISCONNECTED = {
    CR_CONNECTION_ERROR,
    CR_CONN_HOST_ERROR,
    CR_SERVER_GONE,
    CR_SERVER_LOST,
    0,  # PyMySQL's InterfaceError of a connection that is closed
    1047,  # WSREP has not yet prepared node: a Galera node that has lost its cluster
    1053,  # ER_SERVER_SHUTDOWN
    1077,  # ER_NORMAL_SHUTDOWN
    1079,  # ER_SHUTDOWN_COMPLETE
    1152,  # ER_ABORTING_CONNECTION
    1158,  # ER_NET_READ_ERROR, and its kin
    1159,
    1160,
    1161,
    1927,  # ER_CONNECTION_KILLED, MariaDB
    3169,  # ER_SESSION_WAS_KILLED
    4031,  # ER_CLIENT_INTERACTION_TIMEOUT: wait_timeout ran out
}
REFUSED = {
    1044,  # ER_DBACCESS_DENIED_ERROR
    1045,  # ER_ACCESS_DENIED_ERROR
    1049,  # ER_BAD_DB_ERROR
    1129,  # ER_HOST_IS_BLOCKED
    1130,  # ER_HOST_NOT_PRIVILEGED
    1142,  # ER_TABLEACCESS_DENIED_ERROR
    1143,  # ER_COLUMNACCESS_DENIED_ERROR
    1227,  # ER_SPECIFIC_ACCESS_DENIED_ERROR
    1251,  # ER_NOT_SUPPORTED_AUTH_MODE
    1698,  # ER_ACCESS_DENIED_NO_PASSWORD_ERROR
    1820,  # ER_MUST_CHANGE_PASSWORD
    1862,  # ER_MUST_CHANGE_PASSWORD_LOGIN
    2026,  # CR_SSL_CONNECTION_ERROR
    2059,  # CR_AUTH_PLUGIN_CANNOT_LOAD
    3118,  # ER_ACCOUNT_HAS_BEEN_LOCKED
    4151,  # ER_ACCOUNT_HAS_BEEN_LOCKED, MariaDB
}
UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
"""In a CR_CONN_HOST_ERROR: it is the server's certificate, and no next try will change it."""
ER_NO_DB = 1046
MISSING = {1054, 1146}
"""ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE"""
ER_CON_COUNT = 1040
ER_NET_PACKET_TOO_LARGE = 1153
CHECK_VIOLATED = {3819, 4025}
"""ER_CHECK_CONSTRAINT_VIOLATED, and MariaDB's ER_CONSTRAINT_FAILED."""
ER_GET_ERRNO, ER_ERROR_ON_WRITE = 1030, 1026
CAPACITY = {
    ER_CON_COUNT,
    ER_NET_PACKET_TOO_LARGE,
    1021,  # ER_DISK_FULL
    1037,  # ER_OUTOFMEMORY
    1038,  # ER_OUT_OF_SORTMEMORY
    1041,  # ER_OUT_OF_RESOURCES
    1114,  # ER_RECORD_FILE_FULL
    1203,  # ER_TOO_MANY_USER_CONNECTIONS
    1206,  # ER_LOCK_TABLE_FULL
    1226,  # ER_USER_LIMIT_REACHED
    1406,  # ER_DATA_TOO_LONG
    1534,  # ER_BINLOG_ROW_LOGGING_FAILED, by a full disk
    1598,  # ER_BINLOG_LOGGING_IMPOSSIBLE
    3675,  # ER_INNODB_TABLESPACE_FULL…: the tablespace is full
}
DISK_FULL = re.compile(r"errno: (28|122)\b|error (28|122)\b|No space left|Disk quota|disk full", re.IGNORECASE)
"""ENOSPC and EDQUOT, as the texts of 1026, 1030 and others carry them."""
READ_ONLY = {1290, 1836, 1792}
"""ER_OPTION_PREVENTS_STATEMENT (--read-only), ER_READ_ONLY_MODE, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION"""


def number(error: BaseException) -> int:
    """The server's or the driver's error number; -1 where there is none."""
    found = error.args[0] if error.args else -1
    return found if isinstance(found, int) else -1


def words(error: BaseException) -> str:
    """What the server or the driver says, with what the network said where only the cause tells."""
    text = str(error.args[-1]) if error.args else ""
    cause = error.__cause__
    # PyMySQL quotes it, aiomysql doesn't.
    return f"{text} ({cause})" if isinstance(cause, OSError) and str(cause) not in text else text
