"""C18 schema: ordered, checksummed, re-runnable, locked steps; opening checks the version and says what to run.

Killed steps, upgrades of released versions and the contents of the wheel are tested with the migrations themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chatkeep import SchemaError, open_repository
from chatkeep.conformance.harness import Form, Harness, needs
from chatkeep.conformance.support import in_threads, new_id, run_program, said, texts

MIGRATE = """
    import sys
    from chatkeep import open_repository
    open_repository(sys.argv[1], schema="migrate").close()
"""


@needs("empty_url")
class TestC18Schema:
    """A namespace from nothing to the present version, and what opening says about any other."""

    @pytest.fixture
    def empty(self, harness: Harness) -> Iterator[str]:
        """A namespace without tables."""
        url = harness.empty_url()
        yield url
        harness.drop(url)

    def test_opening_an_empty_place_says_what_to_run(self, harness: Harness, form: Form, empty: str) -> None:
        """Validation changes nothing and names the command."""
        for _ in range(2):
            with pytest.raises(SchemaError, match="chatkeep migrate"):
                harness.open(form, empty, schema="validate")

    def test_using_an_empty_place_unchecked_says_what_to_run(
        self, harness: Harness, form: Form, empty: str, conversation_id: str
    ) -> None:
        """With schema="ignore" the first call meets the missing tables: still a SchemaError that names the command."""
        calls: list[Callable[[Any], object]] = [
            lambda repository: repository.append(conversation_id, said(1)),
            lambda repository: repository.find_by_conversation_id(conversation_id),
        ]
        with harness.open(form, empty, schema="ignore") as repository:
            for call in calls:
                with pytest.raises(SchemaError, match="chatkeep migrate"):
                    call(repository)

    def test_migrating_makes_it_usable(self, harness: Harness, form: Form, empty: str, conversation_id: str) -> None:
        """Once migrated it validates, and every row of the history has its checksum."""
        with harness.open(form, empty, schema="migrate") as repository:
            repository.append(conversation_id, said(2))
        with harness.open(form, empty, schema="validate") as repository:
            assert texts(repository.find_by_conversation_id(conversation_id)) == texts(said(2))
        history = harness.schema_history(empty)
        assert [version for version, _ in history] == list(range(1, len(history) + 1))
        assert all(checksum for _, checksum in history)

    def test_migrating_again_changes_nothing(
        self, harness: Harness, form: Form, empty: str, conversation_id: str
    ) -> None:
        """Neither data nor history."""
        with harness.open(form, empty, schema="migrate") as repository:
            repository.append(conversation_id, said(2))
        before = harness.schema_history(empty)
        for _ in range(3):
            with harness.open(form, empty, schema="migrate") as repository:
                assert repository.count_messages(conversation_id) == 2
        assert harness.schema_history(empty) == before

    def test_five_migrators_at_once_migrate_once(
        self, harness: Harness, form: Form, empty: str, conversation_id: str
    ) -> None:
        """Threads of one process; each finds the schema in place when it returns."""

        def migrate(number: int) -> int:
            with harness.open(form, empty, schema="migrate") as repository:
                return repository.append(conversation_id, said(1, f"migrator {number}"))

        assert len(set(in_threads(5, migrate))) == 5
        versions = [version for version, _ in harness.schema_history(empty)]
        assert versions == sorted(set(versions))
        with open_repository(empty, schema="validate") as repository:
            assert repository.count_messages(conversation_id) == 5

    @needs("shared_between_processes")
    def test_migrators_in_processes_migrate_once(self, harness: Harness, empty: str) -> None:
        """A lock that only this process knew would not hold them apart."""
        in_threads(3, lambda _: run_program(harness, MIGRATE, empty))
        versions = [version for version, _ in harness.schema_history(empty)]
        assert versions == sorted(set(versions))
        open_repository(empty, schema="validate").close()

    def test_a_newer_schema_asks_for_an_upgrade(self, harness: Harness, form: Form, empty: str) -> None:
        """Of the package: an older chatkeep neither writes to nor migrates what it doesn't know."""
        harness.open(form, empty, schema="migrate").close()
        newest = harness.schema_history(empty)[-1][0]
        harness.change_schema_history(empty, version=newest + 1, checksum="0" * 64)
        before = harness.schema_history(empty)
        for schema in ("validate", "migrate"):
            with pytest.raises(SchemaError, match=r"(?i)upgrade"):
                harness.open(form, empty, schema=schema)
        assert harness.schema_history(empty) == before

    def test_an_edited_file_is_detected(self, harness: Harness, form: Form, empty: str) -> None:
        """A step that was applied with another checksum is refused and named."""
        harness.open(form, empty, schema="migrate").close()
        harness.change_schema_history(empty, version=1, checksum="0" * 64)
        for schema in ("validate", "migrate"):
            with pytest.raises(SchemaError, match=r"(?i)checksum|SHA-256"):
                harness.open(form, empty, schema=schema)

    def test_a_step_applied_by_hand_is_accepted(
        self, harness: Harness, form: Form, empty: str, conversation_id: str
    ) -> None:
        """Its row has no checksum: a DBA ran the file, and opening takes it."""
        harness.open(form, empty, schema="migrate").close()
        harness.change_schema_history(empty, version=1, checksum=None)
        with harness.open(form, empty, schema="validate") as repository:
            repository.append(conversation_id, said(1))
        with harness.open(form, empty, schema="migrate") as repository:
            assert repository.count_messages(conversation_id) == 1

    def test_two_namespaces_are_two_stores(self, harness: Harness, form: Form, namespace: str, empty: str) -> None:
        """Migrating one place leaves another as it was, and their conversations don't meet."""
        conversation_id = new_id()
        with harness.open(form, empty, schema="migrate") as one, harness.open(form, namespace) as two:
            one.append(conversation_id, said(1))
            assert two.get_conversation(conversation_id) is None
