"""Fresh databases for the fault tests: a file, or a schema of its own on the server, gone afterwards."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import URL, make_url

from chatkeep import open_repository
from tests import services


@contextlib.contextmanager
def migrated_schema() -> Iterator[URL]:
    """The URL of a new PostgreSQL schema with chatkeep's tables."""
    found = services.service_url("postgresql")
    if not found.available:
        services.skip_or_fail("postgresql", str(found.reason))
    name = f"test_fault_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(str(found.url), autocommit=True) as admin:
        admin.execute(f"CREATE SCHEMA {name}")
        there = make_url(str(found.url)).update_query_dict({"search_path": name})
        open_repository(there, schema="migrate").close()
        yield there
        admin.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(scope="module")
def database() -> Iterator[URL]:
    with migrated_schema() as there:
        yield there


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("sqlite", "postgresql")])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An address of each backend in turn."""
    if request.param == "sqlite":
        services.service_url("sqlite")  # for the report
        yield f"sqlite:///{tmp_path / 'chat.db'}"
        return
    with migrated_schema() as there:
        yield there.render_as_string(hide_password=False)
