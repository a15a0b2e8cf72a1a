"""MariaDB: MySQL's protocol and drivers, with its own collations, time-outs, schema files and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chatkeep.backends.plugin import BackendPlugin, OpenRequest
from chatkeep.backends.relational.backend import RelationalBackend
from chatkeep.backends.relational.mysql import MysqlDialect, open_with
from chatkeep.backends.relational.mysql_connection import OPTIONS
from chatkeep.backends.relational.mysql_cursor import STATEMENT_TIMEOUT
from chatkeep.errors import ConfigurationError

if TYPE_CHECKING:
    from chatkeep.migrations.target import Target
    from chatkeep.storage.backend import Backend


class MariadbDialect(MysqlDialect):
    """What differs from MySQL."""

    name = "mariadb"
    product = "MariaDB"

    def _statement_timeout(self) -> str:
        assert self._request is not None
        # For every statement, and it leaves the connection whole.
        seconds = self._request.options.get("statement_timeout", STATEMENT_TIMEOUT)
        return f"SET max_statement_time = {max(0.001, seconds):.3f}"  # 0 would be no limit

    def check_product(self, version: str) -> None:
        if "mariadb" not in version.lower():
            raise ConfigurationError(f"mariadb: the server is MySQL {version}; use a mysql: URL")


def _open(request: OpenRequest) -> RelationalBackend:
    return open_with(MariadbDialect, request)


def _migrations(request: OpenRequest, backend: Backend | None) -> Target:
    from chatkeep.backends.relational.migration import relational_target

    return relational_target(MariadbDialect(), request, backend)


BACKEND = BackendPlugin(
    name="mariadb",
    schemes=("mariadb",),
    open=_open,
    drivers=("pymysql", "aiomysql"),
    migrations=_migrations,
    options=OPTIONS,
)
