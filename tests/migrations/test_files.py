"""Which files are steps, in which order, and what their checksum covers."""

import hashlib
from pathlib import Path

import pytest

from chatkeep.errors import SchemaError
from chatkeep.migrations.files import latest_version, schema_directory, schema_files, tables_after
from tests.migrations.places import BACKENDS, COMMIT


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "V0001__chat_memory.sql").write_text("CREATE TABLE a (x int);\n")
    (tmp_path / "V0002__more.sql").write_text("CREATE TABLE b (x int);\n")
    return tmp_path


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_shipped_files_are_found_and_in_order(backend: str) -> None:
    files = schema_files(backend)
    assert files[0].name == "V0001__chat_memory.sql"
    assert files[0].description == "chat memory"
    assert [file.version for file in files] == list(range(1, latest_version(backend) + 1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_shipped_file_fills_in_its_own_history_row_and_leaves_transactions_to_its_caller(backend: str) -> None:
    for file in schema_files(backend):
        statements = [text for text in without_comments(file.script).split(";") if text.strip()]
        row = " ".join(statements[-1].split())
        assert row.startswith(
            "INSERT INTO chatkeep_schema_history (version, description, checksum, applied_at, success)"
        )
        assert f"VALUES ({file.version}, '{file.description}', NULL," in row
        first_words = {statement.split()[0].upper() for statement in statements}
        assert not first_words & {"BEGIN", "START", "COMMIT", "ROLLBACK", "END", "SAVEPOINT", "PRAGMA", "VACUUM"}


@pytest.mark.parametrize("backend", COMMIT)
def test_where_each_statement_commits_the_history_row_may_be_there_before_the_file_is(backend: str) -> None:
    for file in schema_files(backend):
        assert file.script.endswith("ON DUPLICATE KEY UPDATE success = TRUE;\n")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_tables_of_the_shipped_files_are_known(backend: str) -> None:
    assert tables_after(schema_files(backend)) == {"chatkeep_schema_history", "chat_conversation", "chat_message"}


def test_the_files_beside_src_are_used_in_a_checkout() -> None:
    repository = Path(__file__).resolve().parents[2]
    assert Path(str(schema_directory("sqlite"))) == repository / "schemas" / "sqlite"


def test_an_unknown_backend_says_where_it_looked() -> None:
    with pytest.raises(SchemaError, match=r"no schema files for oracle: looked in .*schemas.*reinstall"):
        schema_files("oracle")


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no schema files for sqlite"):
        schema_files("sqlite", tmp_path)


def test_line_ends_and_a_byte_order_mark_do_not_change_the_checksum(directory: Path) -> None:
    before = schema_files("sqlite", directory)
    for path in directory.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert schema_files("sqlite", directory) == before
    assert before[0].checksum == hashlib.sha256(b"CREATE TABLE a (x int);\n").hexdigest()


def test_any_other_change_changes_the_checksum(directory: Path) -> None:
    before = schema_files("sqlite", directory)
    path = directory / "V0001__chat_memory.sql"
    path.write_text(path.read_text() + " ")
    assert schema_files("sqlite", directory)[0].checksum != before[0].checksum


@pytest.mark.parametrize(
    "name",
    ["V1__short.sql", "v0003__small.sql", "V0003_one_underscore.sql", "V0003__.sql", "V0003__Big.sql", "V0003__a b.sql",
     "V0003__x.sql.bak", "V0003__x.txt", "V0003__a__b.sql", "U0003__undo.sql", "extra.sql", "R__views.cql"],
)  # fmt: skip
def test_a_misnamed_step_is_an_error_and_not_ignored(directory: Path, name: str) -> None:
    (directory / name).write_text("SELECT 1;")
    with pytest.raises(SchemaError, match=r"is no name of a step; expected V0001__what_it_does\.sql"):
        schema_files("sqlite", directory)


def test_other_files_are_no_steps(directory: Path) -> None:
    (directory / "README.md").write_text("about")
    (directory / ".gitkeep").write_text("")
    assert len(schema_files("sqlite", directory)) == 2


def test_a_version_given_twice_is_refused(directory: Path) -> None:
    (directory / "V0002__other.sql").write_text("SELECT 1;")
    with pytest.raises(SchemaError, match=r"V0002__more\.sql and V0002__other\.sql have the same version"):
        schema_files("sqlite", directory)


def test_the_same_version_with_other_zeros_is_refused(directory: Path) -> None:
    (directory / "V00002__other.sql").write_text("SELECT 1;")
    with pytest.raises(SchemaError, match="have the same version"):
        schema_files("sqlite", directory)


def test_a_gap_is_refused(directory: Path) -> None:
    (directory / "V0004__late.sql").write_text("SELECT 1;")
    with pytest.raises(SchemaError, match=r"V0004__late\.sql comes where version 3 was expected"):
        schema_files("sqlite", directory)


def test_versions_begin_at_one(tmp_path: Path) -> None:
    (tmp_path / "V0002__more.sql").write_text("SELECT 1;")
    with pytest.raises(SchemaError, match="comes where version 1 was expected"):
        schema_files("sqlite", tmp_path)


def test_a_file_that_is_not_utf_8_is_refused(directory: Path) -> None:
    (directory / "V0003__latin.sql").write_bytes(b"-- caf\xe9\n")
    with pytest.raises(SchemaError, match=r"V0003__latin\.sql is not UTF-8"):
        schema_files("sqlite", directory)


def test_dropped_and_renamed_tables_are_followed_and_comments_are_not_statements(tmp_path: Path) -> None:
    (tmp_path / "V0001__a.sql").write_text(
        "-- CREATE TABLE no1 (x int); it doesn't count\n"
        "/* create table no2 */ INSERT INTO t VALUES ('create table no3');\n"
        "create table if not exists One (x int);\nCREATE TABLE two (x int);\nCREATE TABLE three (x int);"
    )
    (tmp_path / "V0002__b.sql").write_text("DROP TABLE two;\nALTER TABLE three RENAME TO four;")
    assert tables_after(schema_files("sqlite", tmp_path)) == {"one", "four"}


def without_comments(script: str) -> str:
    return "\n".join(line.partition("--")[0] for line in script.splitlines())
