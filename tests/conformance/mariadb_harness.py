"""The harness of MariaDB: the protocol, the driver and the means of MySQL's, on a server of its own."""

from tests.conformance.mysql_harness import MysqlHarness


class MariadbHarness(MysqlHarness):
    backend = "mariadb"
    schemes = ("mariadb",)
    extra = "mariadb"
