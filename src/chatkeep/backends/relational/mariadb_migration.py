"""The migration target of MariaDB."""

from __future__ import annotations

from chatkeep.backends.relational.mysql_migration import MysqlTarget


class MariadbTarget(MysqlTarget):
    """As on MySQL: named locks, and DDL that commits by itself."""

    PRODUCT = "MariaDB"
    MINIMUM = (10, 11, 0)
    """The oldest that its makers support and that has descending indexes."""
    STATEMENT_LIMIT = "max_statement_time"


TARGET = MariadbTarget
