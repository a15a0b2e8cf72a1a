"""Rows of each released schema version still load, after the steps that came since."""

import json
from pathlib import Path

import pytest

from chatkeep import Message, open_repository
from chatkeep.migrations.files import schema_files
from chatkeep.migrations.runner import migrate
from tests.migrations.make_samples import SAMPLES, read
from tests.migrations.places import BACKENDS, Place

VERSIONS = [(backend, file.version) for backend in BACKENDS for file in schema_files(backend)]


@pytest.fixture(
    params=[
        pytest.param((backend, version), marks=getattr(pytest.mark, backend), id=f"{backend}-V{version:04d}")
        for backend, version in VERSIONS
    ]
)
def sample(request: pytest.FixtureRequest) -> tuple[Place, Path]:
    """A database as version N of chatkeep left it, with the sample rows of that version, then migrated."""
    backend, version = request.param
    place: Place = request.getfixturevalue(backend)
    path = SAMPLES / backend / f"V{version:04d}.sql"
    assert path.is_file(), f"{path.name} is missing: make_samples.py writes it for a new schema version"
    with place.target() as target:
        migrate(target, schema_files(backend)[:version])
        place.execute(path.read_text(encoding="utf-8"))
        migrate(target)
    return place, path.with_suffix(".json")


def test_every_row_reads_as_it_was_meant(sample: tuple[Place, Path]) -> None:
    place, expected = sample
    with open_repository(place.url, schema="validate") as repository:
        found = read(repository)
    assert json.loads(json.dumps(found)) == json.loads(expected.read_text(encoding="utf-8"))


def test_old_conversations_go_on_with_new_numbers(sample: tuple[Place, Path]) -> None:
    place, _ = sample
    with open_repository(place.url, schema="validate") as repository:
        for conversation_id in repository.find_conversation_ids():
            before = repository.get_conversation(conversation_id)
            positions = [entry.position for entry in repository.history(conversation_id).items]
            assert before is not None
            version = repository.append(conversation_id, [Message.user("new")])
            entries = repository.history(conversation_id).items
            assert version > before.version
            assert [entry.position for entry in entries[:-1]] == positions
            assert entries[-1].message.text == "new"
            assert entries[-1].position > max(positions, default=0)
        assert repository.append("a new one", [Message.user("new")])
        purged = repository.purge_expired()
    assert purged.messages == 1
