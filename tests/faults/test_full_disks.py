"""The disk that holds the messages is full: a typed error, nothing lost, and all goes on once there is room again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from chatkeep import Message, Outcome, StorageTimeoutError, open_async_repository, open_repository
from chatkeep.conformance.blocking import blocking, wait_for
from chatkeep.conformance.harness import Form
from tests import services
from tests.faults.engines import marked
from tests.faults.full_disk import ROOM, check_full_disk
from tests.own_server import OwnServer
from tests.servers import plain


def _move_on_postgresql(server: OwnServer) -> None:
    server.shell("install --directory --owner=postgres --mode=700 /small/messages")
    with psycopg.connect(plain(server.url), autocommit=True) as admin:
        admin.execute("CREATE TABLESPACE small LOCATION '/small/messages'")
        admin.execute("ALTER TABLE chat_message SET TABLESPACE small")


def _move_on_mysql(server: OwnServer) -> None:
    url = server.url
    with pymysql.connect(
        host=url.host or "",
        port=url.port or 0,
        user=url.username,
        password=url.password or "",
        database=url.database,
    ) as admin:
        cursor = admin.cursor()
        cursor.execute("SHOW CREATE TABLE chat_message")
        ((_, made),) = cursor.fetchall()
        cursor.execute("DROP TABLE chat_message")
        cursor.execute(f"{made} DATA DIRECTORY = '/small'")


@dataclass(frozen=True)
class Small:
    """How the messages of a kind of server get onto a small disk at /small."""

    move: Callable[[OwnServer], None]
    arguments: tuple[str, ...] = ()
    tmpfs: dict[str, str] = field(default_factory=lambda: {"/small": "size=32m,mode=1777"})
    before: int = 0
    """MB of messages that lie there before the disk is filled up."""
    size: int = 48 * 1024
    """Of the messages that find no room."""


# SQL Server is missing: its image is not to be had where this was written, so nothing here would be known to be true.
DISKS = {
    "postgresql": Small(_move_on_postgresql),
    "mysql": Small(
        _move_on_mysql,
        arguments=("--innodb-directories=/small", "--log-bin=/logs/binlog"),
        tmpfs={"/small": "size=32m,mode=1777", "/logs": "size=96m,mode=1777"},
    ),
    # It aborts ("Out of disk space in rollback", 11.8.9) where the insertion of a message that takes pages of its own
    # finds no room, or any in a table below 32 MB, of which no part is kept free for that. To its clients such an end
    # is the crash of test_restarts.py.
    "mariadb": Small(_move_on_mysql, tmpfs={"/small": "size=128m,mode=1777"}, before=40, size=4000),
}


@pytest.fixture(scope="module", params=marked(*DISKS))
def own(request: pytest.FixtureRequest) -> Iterator[OwnServer]:
    disk = DISKS[request.param]
    own = OwnServer(request.param, "disks", tmpfs=disk.tmpfs, arguments=disk.arguments)
    open_repository(own.url, schema="migrate").close()
    disk.move(own)
    with open_repository(own.url) as repository:
        for _ in range(disk.before):
            repository.append("before", Message.user(os.urandom(512 * 1024).hex()))
    yield own
    own.stop()


def _take(server: OwnServer, folder: str) -> None:
    server.shell(f"rm -f {folder}/filler")  # of a test that failed
    kilobytes = int(server.shell(f"df --output=avail {folder} | tail -n 1"))
    server.shell(f"fallocate --length {kilobytes - ROOM * 1024}K {folder}/filler")


def _free(server: OwnServer, folder: str) -> None:
    server.shell(f"rm {folder}/filler")


def test_messages_find_no_room(own: OwnServer, form: Form) -> None:
    if form == "sync":
        opened: Any = open_repository(own.url)
    else:
        opened = blocking(wait_for(open_async_repository(own.url)))
    with opened as repository:
        size = DISKS[own.backend].size
        check_full_disk(repository, lambda: _take(own, "/small"), lambda: _free(own, "/small"), size=size)


# Behind the others, for it leaves the server waiting: it looks for room once a minute, and goes on by itself then.
@pytest.mark.parametrize("own", marked("mysql"), indirect=True)
def test_mysql_waits_for_room_for_its_binary_log_and_callers_do_not(own: OwnServer) -> None:
    conversation = uuid.uuid4().hex
    options = {"statement_timeout": "2s", "retry_timeout": "0.2s"}
    with open_repository(own.url, **options) as repository:
        repository.append(conversation, Message.user("before"))
        _take(own, "/logs")
        with pytest.raises(StorageTimeoutError) as caught:
            for number in range(400):
                repository.append(conversation, Message.user(f"{number}" + "x" * 48 * 1024))
        assert caught.value.outcome is Outcome.UNKNOWN
        assert repository.count_messages(conversation) == number + 1, "reads go on, and show what is acknowledged"


@pytest.mark.sqlite
def test_a_sqlite_file_finds_no_room(tmp_path: Path) -> None:
    services.service_url("sqlite")
    folder = tmp_path / "small"
    folder.mkdir()
    # In a mount namespace, which vanishes with its process; a user namespace makes that possible without root.
    mount = ["unshare", "--user", "--map-root-user", "--mount"]
    disk = f"mount -t tmpfs -o size=8m tmpfs '{folder}'"
    if shutil.which("unshare") is None or subprocess.run([*mount, "sh", "-c", disk], capture_output=True).returncode:
        pytest.skip("sqlite: this system lets nobody mount a small disk in a namespace of one's own")
    command = f"{disk} && exec '{sys.executable}' -W error -m tests.faults.full_disk '{folder}'"
    done = subprocess.run(
        [*mount, "sh", "-ec", command], cwd=services.REPOSITORY_ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
