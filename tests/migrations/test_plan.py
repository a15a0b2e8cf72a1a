"""What follows from a history and a set of files, and how it is said."""

import datetime as dt

import msgspec
import pytest

from chatkeep.migrations.files import SchemaFile
from chatkeep.migrations.plan import Plan, State, Words, make_plan, obstacle, shortfall
from chatkeep.migrations.target import Applied

WHEN = dt.datetime(2026, 3, 1, 3, 0, tzinfo=dt.UTC)
WORDS = Words(
    place="postgresql on db:5432, database chat, schema public",
    migrate="chatkeep migrate --url postgresql://app@db/chat",
    repair="chatkeep repair --url postgresql://app@db/chat",
    account="",
)


def files(count: int) -> list[SchemaFile]:
    return [SchemaFile(n, f"step {n}", f"V{n:04d}__step_{n}.sql", "", f"sum{n}" * 4) for n in range(1, count + 1)]


def row(version: int, checksum: str | None = "", success: bool = True) -> Applied:
    own = f"sum{version}" * 4
    return Applied(version, f"step {version}", own if checksum == "" else checksum, WHEN, success)


def states(plan: Plan) -> list[State]:
    return [step.state for step in plan.steps]


def test_everything_is_pending_where_there_is_no_history_table() -> None:
    plan = make_plan(files(2), None)
    assert states(plan) == [State.PENDING, State.PENDING]
    assert (plan.version, [file.version for file in plan.pending]) == (0, [1, 2])


def test_an_empty_history_table_means_that_the_first_file_died() -> None:
    plan = make_plan(files(2), [])
    assert states(plan) == [State.FAILED, State.PENDING]
    text = obstacle(plan, WORDS)
    assert text is not None
    assert "chatkeep_schema_history is there and empty, so V0001__step_1.sql began and did not end" in text


def test_a_database_at_the_latest_version_has_no_problem() -> None:
    plan = make_plan(files(2), [row(1), row(2, checksum=None)])
    assert states(plan) == [State.APPLIED, State.BY_HAND]
    assert (obstacle(plan, WORDS), shortfall(plan, WORDS)) == (None, None)


def test_an_older_database_names_the_command_and_the_files() -> None:
    text = shortfall(make_plan(files(3), [row(1)]), WORDS)
    assert text is not None
    assert text.startswith(WORDS.place)
    assert "the tables are at version 1, and this package works with version 3" in text
    assert "to apply: V0002__step_2.sql, V0003__step_3.sql" in text
    assert f"Run `{WORDS.migrate}`" in text


def test_missing_tables_are_told_from_old_ones() -> None:
    text = shortfall(make_plan(files(1), None), WORDS)
    assert text is not None
    assert "there are no chatkeep tables" in text


def test_a_newer_database_asks_for_a_newer_package() -> None:
    plan = make_plan(files(1), [row(1), row(2), row(3)])
    assert states(plan) == [State.APPLIED, State.NEWER, State.NEWER]
    text = obstacle(plan, WORDS)
    assert text is not None
    assert "the tables are at version 3, and this package knows only up to 1. Upgrade the package" in text


def test_an_edited_file_is_named_with_both_checksums_and_the_way_out() -> None:
    text = obstacle(make_plan(files(2), [row(1, checksum="0123456789abcdef"), row(2)]), WORDS)
    assert text is not None
    assert "V0001__step_1.sql is not the file that was applied on 2026-03-01 03:00" in text
    assert "sum1sum1sum1…" in text
    assert "0123456789ab…" in text
    assert "Restore the file" in text
    assert "new file with the next version" in text


def test_a_failed_step_names_both_ways_to_repair_it() -> None:
    text = obstacle(make_plan(files(2), [row(1), row(2, checksum=None, success=False)]), WORDS)
    assert text is not None
    assert "step V0002__step_2.sql began, on 2026-03-01 03:00, and did not end" in text
    assert f"`{WORDS.repair}`" in text
    assert f"`{WORDS.repair} --completed`" in text


def test_a_failed_step_that_can_run_again_asks_nobody_to_undo_anything() -> None:
    words = msgspec.structs.replace(WORDS, rerunnable=True)
    text = obstacle(make_plan(files(2), [row(1), row(2, checksum=None, success=False)]), words)
    assert text is not None
    assert "step V0002__step_2.sql began, on 2026-03-01 03:00, and did not end. Its statements can run again" in text
    assert f"run `{WORDS.repair}`, so that the next `{WORDS.migrate}` runs the file from its start" in text
    assert "undo" not in text
    assert "drop" not in text


def test_a_step_under_a_later_one_is_skipped_and_not_pending() -> None:
    plan = make_plan(files(3), [row(1), row(3)])
    assert states(plan) == [State.APPLIED, State.SKIPPED, State.APPLIED]
    assert plan.pending == []
    text = obstacle(plan, WORDS)
    assert text is not None
    assert "V0002__step_2.sql was not applied, although version 3 was" in text


def test_the_most_important_problem_comes_first_and_the_others_are_named() -> None:
    history = [row(1, checksum="other"), row(2, success=False), row(4)]
    text = obstacle(make_plan(files(3), history), WORDS)
    assert text is not None
    assert text.startswith(f"{WORDS.place}: step V0002__step_2.sql began")
    order = [text.index(word) for word in (": edited", ": skipped", ": newer than this package")]
    assert order == sorted(order)


@pytest.mark.parametrize("history", [[row(1), row(2), row(3)], [row(1, success=False)], [row(1, checksum="x")], []])
def test_no_text_promises_a_downgrade_or_speaks_of_a_password(history: list[Applied]) -> None:
    text = obstacle(make_plan(files(2), history), WORDS)
    assert text is not None
    assert "password" not in text
    assert "downgrade" not in text
