"""Steps that died on an engine that can't roll DDL back: seen, refused, and settled on a person's word."""

import pytest

from chatkeep.errors import SchemaError
from chatkeep.migrations.plan import State
from chatkeep.migrations.runner import migrate, repair, status, validate
from tests.migrations.places import Place, Steps


def leave_a_dead_step(place: Place, steps: Steps) -> str:
    """What an engine with implicit commits leaves: the mark that it began, and the first half of it."""
    with place.target() as target:
        migrate(target, steps.files())
    path = steps.add("dead", "CREATE TABLE half (x integer);\nCREATE TABLE rest (x integer);")
    place.execute("CREATE TABLE half (x integer);")
    place.execute(path.read_text().partition("\n")[2].replace("CREATE TABLE rest (x integer);", ""))
    place.execute(f"UPDATE chatkeep_schema_history SET success = {FALSE[place.backend]} WHERE description = 'dead'")
    return path.name


FALSE = {"sqlite": "0", "postgresql": "false"}


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
