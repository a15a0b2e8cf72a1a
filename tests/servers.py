"""What must be known of each kind of server: its driver, how to ask it for its version, how its address is made.

docker-compose.yml knows images, ports and passwords, tests/services.py finds and starts the servers. Like that, this
must not import chatkeep.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlalchemy.engine import URL


class WrongServerError(Exception):
    """A server answered, but it is of another kind than its address says; waiting will not change it."""


@dataclass(frozen=True)
class Server:
    """What must be known of a kind of server that docker-compose.yml cannot say."""

    driver: str
    """The module that its tests cannot do without."""

    probe: Callable[[URL, float], str]
    """Runs a real query, giving up on an address after so many seconds, and returns the server's version."""

    address: Callable[[Mapping[str, str], str, int], URL]
    """Makes the administrator's URL out of the container's environment and the host and port it is mapped to."""


def masked(url: URL) -> str:
    """An address that may be shown. User and options stay out too: an option can hold a password as well."""
    host = url.host if url.port is None else f"{url.host}:{url.port}"
    return f"{url.drivername}://{host}/{url.database or ''}"


def plain(url: URL) -> str:
    """The URL as drivers know it, without SQLAlchemy's `+driver`."""
    return url.set(drivername=url.get_backend_name()).render_as_string(hide_password=False)


def _probe_postgresql(url: URL, timeout: float) -> str:
    import psycopg

    # libpq counts in whole seconds and takes 0 for "wait for ever".
    with psycopg.connect(plain(url), connect_timeout=max(1, round(timeout))) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    assert row is not None
    return f"PostgreSQL {row[0].split()[0]}"


def _postgresql_address(environment: Mapping[str, str], host: str, port: int) -> URL:
    return URL.create(
        "postgresql",
        username=environment["POSTGRES_USER"],
        password=environment["POSTGRES_PASSWORD"],
        host=host,
        port=port,
        database=environment["POSTGRES_DB"],
    )


def _probe_mysql_protocol(expected: str, url: URL, timeout: float) -> str:
    """Two products speak this protocol, and each answers most of what the other is asked: only the version tells."""
    import pymysql

    # connect_timeout ends once the port is open; a server that is silent after that is left to read_timeout.
    connection = pymysql.connect(
        **_account(url, default_port=3306), connect_timeout=timeout, read_timeout=timeout, write_timeout=timeout
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@version, @@version_comment")
            version, comment = cursor.fetchone()
    finally:
        connection.close()
    found = "MariaDB" if "mariadb" in f"{version} {comment}".lower() else "MySQL"
    product = f"{found} {version.split('-')[0]}"
    if found != expected:
        raise WrongServerError(f"{product} answers at {masked(url)}, where {expected} is expected")
    return product


def _root_address(backend: str, environment: Mapping[str, str], host: str, port: int) -> URL:
    prefix = backend.upper()
    return URL.create(
        backend,
        username="root",
        password=environment[f"{prefix}_ROOT_PASSWORD"],
        host=host,
        port=port,
        database=environment[f"{prefix}_DATABASE"],
    )


def _probe_sqlserver(url: URL, timeout: float) -> str:
    import pymssql

    # db-lib counts in whole seconds and takes 0 for "wait for ever".
    seconds = max(1, round(timeout))
    # Without a version of the protocol, the driver tries one after another and waits so long for each. Its `timeout`
    # for queries stays unset: db-lib would keep it for every connection of the process.
    bounds = {"login_timeout": seconds, "tds_version": "7.4"}
    with pymssql.connect(**_account(url, default_port=1433), **bounds) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT @@version")
        row = cursor.fetchone()
    assert row is not None
    # "Microsoft SQL Server 2022 (RTM-CU14) (KB5038325) - 16.0.4135.4 (X64) …". What speaks this protocol without being
    # SQL Server puts its own name there, and the report of a run must show that.
    name, _, rest = row[0].partition(" - ")
    product = "SQL Server" if name.startswith("Microsoft SQL Server") else name
    return f"{product} {rest.split()[0]}"


def _sqlserver_address(environment: Mapping[str, str], host: str, port: int) -> URL:
    # The image makes no database; `master` is the one that every server has.
    return URL.create(
        "sqlserver",
        username="sa",
        password=environment["MSSQL_SA_PASSWORD"],
        host=host,
        port=port,
        database="master",
    )


def _account(url: URL, *, default_port: int) -> dict[str, Any]:
    """What a driver's `connect` is given; options in the URL are the product's, no driver's, and stay out."""
    return {
        "host": url.host,
        "port": url.port or default_port,
        "user": url.username,
        "password": str(url.password or ""),
        "database": url.database,
    }


SERVERS: dict[str, Server] = {
    "postgresql": Server(driver="psycopg", probe=_probe_postgresql, address=_postgresql_address),
    "mysql": Server(
        driver="pymysql", probe=partial(_probe_mysql_protocol, "MySQL"), address=partial(_root_address, "mysql")
    ),
    "mariadb": Server(
        driver="pymysql", probe=partial(_probe_mysql_protocol, "MariaDB"), address=partial(_root_address, "mariadb")
    ),
    "sqlserver": Server(driver="pymssql", probe=_probe_sqlserver, address=_sqlserver_address),
}
