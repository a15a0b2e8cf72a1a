"""Steps that died on an engine that can't roll DDL back: seen, refused, and settled on a person's word."""

import pytest

from chatkeep.errors import SchemaError
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, repair, status, validate
from tests.migrations.places import Place, Steps, commits


def leave_a_dead_step(place: Place, steps: Steps) -> str:
    """What an engine with implicit commits leaves: the mark that it began, and the first half of it."""
    with place.target() as target:
        migrate(target, steps.files())
    path = steps.add("dead", "CREATE TABLE half (x integer);\nCREATE TABLE rest (x integer);")
    place.execute("CREATE TABLE half (x integer);")
    place.execute(path.read_text().partition("\n")[2].replace("CREATE TABLE rest (x integer);", ""))
    place.execute(f"UPDATE chatkeep_schema_history SET success = {place.false} WHERE description = 'dead'")
    return path.name


def test_nothing_runs_over_a_step_that_died(place: Place, steps: Steps) -> None:
    name = leave_a_dead_step(place, steps)
    with place.target() as target:
        for call in (validate, migrate):
            with pytest.raises(SchemaError) as caught:
                call(target, steps.files())
            assert f"step {name} began, on 20" in str(caught.value)
            assert f"`{target.command('repair')}`" in str(caught.value)
        assert status(target, steps.files())[-1].state is State.FAILED


def test_a_forgotten_step_runs_again_from_its_start(place: Place, steps: Steps) -> None:
    name = leave_a_dead_step(place, steps)
    place.execute("DROP TABLE half;")
    with place.target() as target:
        assert repair(target, steps.files()) == [name]
        assert status(target, steps.files())[-1].state is State.PENDING
        assert migrate(target, steps.files()).applied == (name,)


def test_a_step_ended_by_hand_counts_as_applied(place: Place, steps: Steps) -> None:
    name = leave_a_dead_step(place, steps)
    place.execute("CREATE TABLE rest (x integer);")
    with place.target() as target:
        assert repair(target, steps.files(), completed=True) == [name]
        assert status(target, steps.files())[-1].state is State.BY_HAND
        validate(target, steps.files())
        assert migrate(target, steps.files()).applied == ()


def test_where_nothing_failed_there_is_nothing_to_repair(place: Place, steps: Steps) -> None:
    with place.target() as target:
        assert repair(target) == []
        assert place.schema() == {}
        migrate(target)
        assert repair(target) == []
        validate(target)


@commits
@pytest.mark.parametrize("completed", [False, True])
def test_a_first_file_that_died_before_its_row_is_settled_too(place: Place, completed: bool) -> None:
    """Its mark can't stand in the history before the history is there."""
    with place.target() as target:
        migrate(target)
        before = place.schema()
        place.execute("DELETE FROM chatkeep_schema_history;")
        for call in (validate, migrate):
            with pytest.raises(SchemaError, match=r"step V0001__chat_memory\.sql began, on 20.*chatkeep repair"):
                call(target)
        assert repair(target, completed=completed) == ["V0001__chat_memory.sql"]
        assert status(target)[0].state is (State.BY_HAND if completed else State.PENDING)
        migrate(target)
        validate(target)
    assert place.schema() == before


@commits
def test_the_whole_file_run_by_hand_settles_a_step_without_repair(place: Place, steps: Steps) -> None:
    with place.target() as target:
        migrate(target, steps.files())
    path = steps.add("dead", "CREATE TABLE IF NOT EXISTS half (x integer);")
    place.execute(path.read_text())
    place.execute("UPDATE chatkeep_schema_history SET success = FALSE WHERE description = 'dead'")
    with place.target() as target:
        assert status(target, steps.files())[-1].state is State.FAILED
        place.apply_by_hand(path)
        assert status(target, steps.files())[-1].state is State.BY_HAND
        validate(target, steps.files())
