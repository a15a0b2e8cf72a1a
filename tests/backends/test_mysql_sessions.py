"""MySQL and MariaDB: a session is what chatkeep needs, whatever the server or its init_connect made of it."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from chatkeep import Message, open_repository
from chatkeep.conformance.harness import Form
from chatkeep.errors import StorageCapacityError
from tests.conformance.mariadb_harness import MariadbHarness
from tests.conformance.mysql_harness import MysqlHarness

INJECTED = "\u7e17', NULL, NULL, UTC_TIMESTAMP(6), NULL); DELETE FROM chat_message; COMMIT; -- "
"""Its first character ends in a backslash's byte where the server reads GBK, and frees the quote behind it."""


@pytest.fixture(
    params=[pytest.param(kind, marks=getattr(pytest.mark, kind.backend)) for kind in (MysqlHarness, MariadbHarness)]
)
def harness(request: pytest.FixtureRequest) -> Iterator[MysqlHarness]:
    with contextlib.closing(request.param()) as made:
        yield made


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def application(harness: MysqlHarness) -> Iterator[str]:
    """The URL of a new database, for an account on which init_connect works: one without SUPER."""
    url = harness.fresh_url()
    name = f"app_{uuid.uuid4().hex[:12]}"
    database = str(make_url(url).database)
    harness.query(url, f"CREATE USER {name}@'%%' IDENTIFIED BY 'not-a-secret'")
    harness.query(url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON {database}.* TO {name}@'%%'")
    yield make_url(url).set(username=name, password="not-a-secret").render_as_string(hide_password=False)
    harness.query(url, f"DROP USER {name}@'%%'")
    harness.drop(url)


@pytest.mark.parametrize("character_set", ["gbk", "latin1", "sjis"])
def test_a_character_set_of_the_server_s_changes_no_text(
    harness: MysqlHarness, form: Form, application: str, character_set: str
) -> None:
    """Values are quoted as UTF-8; where the server read them otherwise, a text could end its quotes."""
    with open_repository(application) as victim:
        victim.append("victim", Message.user("mine"))
        with (
            harness.server_default("init_connect", f"SET NAMES {character_set}"),
            harness.open(form, application) as repository,
        ):
            repository.append("\u6f22\u5b57\u00e9", Message.user(INJECTED))
            assert [message.text for message in repository.find_by_conversation_id("\u6f22\u5b57\u00e9")] == [INJECTED]
        assert victim.find_conversation_ids() == ["victim", "\u6f22\u5b57\u00e9"]
        assert victim.count_messages("victim") == 1


@pytest.mark.parametrize(
    "statement",
    [
        "SET sql_select_limit = 2",
        "SET sql_big_selects = 0, max_join_size = 1",
        "SET sql_safe_updates = 1",
        "SET completion_type = 2",
        "SET autocommit = 0",
        "SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ],
)
def test_settings_of_the_server_s_change_nothing(
    harness: MysqlHarness, form: Form, application: str, statement: str
) -> None:
    """Reads give all, writes are not refused, and no transaction is left open behind either."""
    texts = [f"{number} \\ ' \" %s" for number in range(50)]
    with harness.server_default("init_connect", statement), harness.open(form, application, pool_size=1) as repository:
        repository.append("c", [Message.user(text) for text in texts])
        repository.save_all("c", [Message.user(text) for text in texts])
        assert [message.text for message in repository.find_by_conversation_id("c")] == texts
        assert open_transactions(harness, application) == []
        assert repository.delete_by_conversation_id("c")


def open_transactions(harness: MysqlHarness, url: str) -> list[Any]:
    return harness.query(
        url,
        "SELECT t.trx_id FROM information_schema.innodb_trx t JOIN information_schema.processlist p "
        "ON p.id = t.trx_mysql_thread_id WHERE p.db = ?",
        str(make_url(url).database),
    )


@pytest.mark.parametrize("packet", ["1M", "16M"])
def test_a_call_of_many_messages_fits_into_any_packet(
    harness: MysqlHarness, form: Form, application: str, packet: str
) -> None:
    """As long as each message does; one that doesn't is refused by name, before anything is sent."""
    size = int(packet.removesuffix("M"))
    with (
        harness.server_default("max_allowed_packet", size << 20),
        harness.open(form, application, pool_size=1) as repository,
    ):
        texts = ["\N{GRINNING FACE}" * (size * 5_000) for _ in range(60)]
        repository.append("c", [Message.user(text) for text in texts])
        assert [message.text for message in repository.find_by_conversation_id("c")] == texts
        with pytest.raises(StorageCapacityError, match="max_allowed_packet"):
            repository.append("c", Message.user("x" * (size << 20)) if size < 16 else Message.user("'" * (9 << 20)))
        assert repository.count_messages("c") == 60
