"""doctor: a line for each check, nothing left behind, no password shown."""

from pathlib import Path

import pytest

from chatkeep import ChatMemoryRepository

from .conftest import Run


def test_a_healthy_database_passes_every_check_and_stays_as_it_was(run: Run, repository: ChatMemoryRepository) -> None:
    done = run("doctor", "--pings", "3")
    assert done.code == 0
    assert [line.split()[0] for line in done.lines] == ["✓"] * 6
    for name in ("configuration", "driver", "server", "schema", "round trip", "latency"):
        assert name in done.out
    assert repository.find_conversation_ids() == []


def test_missing_tables_are_a_finding_with_the_command_that_makes_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    done = run("doctor", url=f"sqlite:///{tmp_path}/empty.db")
    assert done.code == 1
    (bad,) = [line for line in done.lines if line.startswith("✗")]
    assert "chatkeep migrate" in bad
    assert "not tried" in done.lines[-1]


@pytest.mark.parametrize(
    ("scheme", "driver"), [("postgresql", "psycopg"), ("mysql", "pymysql"), ("mariadb", "pymysql")]
)
def test_a_server_that_is_not_there_is_a_finding_without_its_password(run: Run, scheme: str, driver: str) -> None:
    pytest.importorskip(driver)
    done = run("doctor", url=f"{scheme}://app:geheim@127.0.0.1:1/chat")
    assert done.code == 1
    assert done.lines[-1].startswith("✗ server")
    assert "geheim" not in done.out + done.err
    assert "app:***@127.0.0.1" in done.out


def test_a_round_trip_that_brings_back_something_else_is_a_finding(
    run: Run, repository: ChatMemoryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChatMemoryRepository, "find_by_conversation_id", lambda *_: [])
    done = run("doctor")
    monkeypatch.undo()
    assert done.code == 1
    assert "✗ round trip" in done.out
    assert repository.find_conversation_ids() == []


def test_a_failing_delete_is_a_finding_and_the_rest_is_still_checked(
    run: Run, repository: ChatMemoryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise PermissionError("no DELETE for you")

    monkeypatch.setattr(ChatMemoryRepository, "delete_by_conversation_id", fail)
    done = run("doctor")
    monkeypatch.undo()
    assert done.code == 1
    assert "✗ round trip    no DELETE for you" in done.out
    assert "✓ latency" in done.out
