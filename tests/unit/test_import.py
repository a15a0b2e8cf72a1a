"""What `import chatkeep` brings: its public names, no driver, and nothing slow."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import chatkeep

DRIVERS = ("psycopg", "psycopg2", "asyncpg", "sqlite3", "aiosqlite", "pymysql", "aiomysql", "pyodbc", "aioodbc")
DRIVERS += ("cassandra", "neo4j", "pymssql", "MySQLdb", "asyncmy")
HEAVY = ("sqlalchemy", "greenlet", "typer", "rich", "openai", "anthropic", "pytest", "hypothesis")


def modules_after(program: str) -> set[str]:
    """The modules of a fresh process, by the first part of their names."""
    code = f"{program}\nimport json, sys\nprint(json.dumps(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return set(found)


@pytest.fixture(scope="module")
def bare() -> set[str]:
    return modules_after("")


def test_importing_chatkeep_imports_no_driver_and_nothing_heavy(bare: set[str]) -> None:
    new = modules_after("import chatkeep") - bare
    assert "chatkeep" in new
    assert not new & {*DRIVERS, *HEAVY}


def test_messages_work_without_any_of_them(bare: set[str]) -> None:
    program = "import chatkeep as c; c.Message.from_dict(c.Message.user('Hi', metadata={'a': 1}).to_dict())"
    assert not (modules_after(program) - bare) & {*DRIVERS, *HEAVY}


def test_opening_one_backend_imports_no_driver_of_another(bare: set[str]) -> None:
    new = modules_after("import chatkeep; chatkeep.open_repository('inprocess:').close()") - bare
    assert not new & ({*DRIVERS} - {"sqlite3"})


def test_an_unknown_scheme_imports_no_driver(bare: set[str]) -> None:
    program = (
        "import chatkeep\ntry: chatkeep.open_repository('mongodb://x')\nexcept chatkeep.ConfigurationError: pass\n"
    )
    assert not (modules_after(program) - bare) & ({*DRIVERS} - {"sqlite3"})


def test_importing_chatkeep_is_quick() -> None:
    program = "import time; began = time.process_time(); import chatkeep; print(time.process_time() - began)"
    seconds = [
        float(
            subprocess.run(
                [sys.executable, "-c", program],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(seconds) < 0.5  # about 0.1 s of processor time where it was written


def test_every_public_name_is_there_once() -> None:
    assert len(chatkeep.__all__) == len(set(chatkeep.__all__))
    for name in chatkeep.__all__:
        assert getattr(chatkeep, name) is not None
    public = {
        name
        for name, found in vars(chatkeep).items()
        if not name.startswith("_") and getattr(found, "__module__", "").startswith("chatkeep.")
    }
    assert public <= set(chatkeep.__all__)


def test_both_repositories_have_the_same_methods_and_arguments() -> None:
    import inspect

    def signatures(kind: Any) -> dict[str, Any]:
        return {
            name: inspect.signature(method)
            for name, method in vars(kind).items()
            if not name.startswith("_") and callable(method)
        }

    plain, awaited = signatures(chatkeep.ChatMemoryRepository), signatures(chatkeep.AsyncChatMemoryRepository)
    assert plain == awaited
    for name in awaited:
        assert inspect.iscoroutinefunction(getattr(chatkeep.AsyncChatMemoryRepository, name)), name
        assert getattr(chatkeep.AsyncChatMemoryRepository, name).__doc__, name
    opening, twin = inspect.signature(chatkeep.open_repository), inspect.signature(chatkeep.open_async_repository)
    assert opening.parameters == twin.parameters
