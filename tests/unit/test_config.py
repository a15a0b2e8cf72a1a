"""Settings: an argument goes before the environment, that before a file; what is unknown is refused with the known."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from chatkeep import NEVER, ConfigurationError, InvalidOwnerError, open_repository
from chatkeep.config import (
    Settings,
    load_settings,
    parse_choice,
    parse_count,
    parse_duration,
    parse_seconds,
    parse_text,
    parse_ttl,
)
from chatkeep.urls import parse_url

DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def _no_configuration_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for variable in list(os.environ):
        if variable.startswith("CHATKEEP_"):
            monkeypatch.delenv(variable)


def settings(directory: Path, url: Any = None, **options: Any) -> Settings:
    return load_settings(url, options, asynchronous=False, directory=directory)


class TestSources:
    def test_without_any_url_the_error_says_how_to_set_one(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"CHATKEEP_URL=.*chatkeep\.toml.*pyproject\.toml"):
            settings(tmp_path)

    def test_an_argument_goes_before_the_environment_and_that_before_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "chatkeep.toml").write_text('url = "inprocess:file"\nowner = "file"\nttl = "1d"\n')
        found = settings(tmp_path)
        assert (found.request.url.database, found.owner, found.ttl) == ("file", "file", DAY)
        monkeypatch.setenv("CHATKEEP_URL", "inprocess:environment")
        monkeypatch.setenv("CHATKEEP_OWNER", "environment")
        found = settings(tmp_path)
        assert (found.request.url.database, found.owner, found.ttl) == ("environment", "environment", DAY)
        found = settings(tmp_path, owner="argument", ttl=2 * DAY)
        assert (found.request.url.database, found.owner, found.ttl) == ("environment", "argument", 2 * DAY)

    def test_a_url_argument_leaves_the_configured_database_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "chatkeep.toml").write_text('url = "inprocess:file"\nowner = "file"\nnonsense = 1\n')
        monkeypatch.setenv("CHATKEEP_TTL", "1d")
        found = settings(tmp_path, "inprocess:argument")
        assert (found.request.url.database, found.owner, found.ttl) == ("argument", "", None)

    def test_the_query_of_the_url_goes_before_the_environment_and_behind_an_argument(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CHATKEEP_URL", "inprocess:x?owner=query&ttl=3d")
        monkeypatch.setenv("CHATKEEP_OWNER", "environment")
        found = settings(tmp_path)
        assert (found.owner, found.ttl) == ("query", 3 * DAY)
        assert not found.request.url.query
        assert settings(tmp_path, owner="argument").owner == "argument"

    def test_pyproject_is_read_where_there_is_no_file_of_our_own(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text('[tool.chatkeep]\nurl = "inprocess:project"\n[tool.other]\nx = 1\n')
        assert settings(tmp_path).request.url.database == "project"
        (tmp_path / "chatkeep.toml").write_text('url = "inprocess:own"\n')
        assert settings(tmp_path).request.url.database == "own"

    def test_a_pyproject_without_our_table_is_no_configuration(self, tmp_path: Path) -> None:
        (tmp_path / "pyproject.toml").write_text("[project]\n")
        with pytest.raises(ConfigurationError, match="no repository URL"):
            settings(tmp_path)

    def test_a_broken_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "chatkeep.toml").write_text("url = ")
        with pytest.raises(ConfigurationError, match=r"^chatkeep\.toml: "):
            settings(tmp_path)
        (tmp_path / "chatkeep.toml").write_bytes(b'url = "\xff"')
        with pytest.raises(ConfigurationError, match=r"^chatkeep\.toml: "):
            settings(tmp_path)

    def test_addresses_of_servers_for_tests_are_no_settings(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CHATKEEP_TEST_POSTGRESQL_URL", "postgresql://x")
        monkeypatch.setenv("CHATKEEP_URL", "inprocess:")
        assert settings(tmp_path).plugin.name == "inprocess"

    def test_a_password_is_taken_from_elsewhere_only_where_the_url_has_none(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CHATKEEP_PASSWORD", "environment")
        assert settings(tmp_path, "postgresql://app@db/x").request.url.password == "environment"
        assert settings(tmp_path, "postgresql://app:own@db/x").request.url.password == "own"
        assert settings(tmp_path, "postgresql://app:own@db/x", password="argument").request.url.password == "argument"

    def test_a_url_object_is_taken_too(self, tmp_path: Path) -> None:
        url = parse_url("postgresql://app:p%40ss@db/chat")
        assert settings(tmp_path, url).request.url == url

    @pytest.mark.parametrize("url", [5, b"inprocess:", ["inprocess:"]])
    def test_a_url_is_text(self, tmp_path: Path, url: Any) -> None:
        with pytest.raises(ConfigurationError, match="url from argument: expected text"):
            settings(tmp_path, url)

    def test_a_configured_url_that_is_no_text_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "chatkeep.toml").write_text("url = 5\n")
        with pytest.raises(ConfigurationError, match=r"url from chatkeep\.toml: expected text"):
            settings(tmp_path)


class TestUnknown:
    def test_an_unknown_scheme_lists_the_known(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"'mongodb'; known: .*inprocess.*postgresql.*sqlite"):
            settings(tmp_path, "mongodb://db/x")

    def test_an_unknown_driver_lists_the_known(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"'psycopg9' for postgresql; known: postgresql\+psycopg"):
            settings(tmp_path, "postgresql+psycopg9://db/x")
        with pytest.raises(ConfigurationError, match="inprocess alone"):
            settings(tmp_path, "inprocess+dict:x")

    @pytest.mark.parametrize("source", ["argument", "the URL", "CHATKEEP_POOLSIZE", "chatkeep.toml"])
    def test_an_unknown_option_names_its_source_and_lists_the_known(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
    ) -> None:
        url: str | None = "inprocess:x"
        options = {}
        if source == "argument":
            options["poolsize"] = 1
        elif source == "the URL":
            url = "inprocess:x?poolsize=1"
        else:
            url = None
            monkeypatch.setenv("CHATKEEP_URL", "inprocess:x")
            if source == "chatkeep.toml":
                (tmp_path / source).write_text("poolsize = 1\n")
            else:
                monkeypatch.setenv(source, "1")
        with pytest.raises(ConfigurationError) as caught:
            settings(tmp_path, url, **options)
        text = str(caught.value)
        assert f"'poolsize' from {source} for inprocess; known: " in text
        assert "owner, password, retry_timeout, schema, ttl" in text

    @pytest.mark.parametrize(
        ("option", "value", "expected"),
        [
            ("schema", "create", "auto, migrate, validate, ignore"),
            ("on_unreadable", "drop", "raise, keep"),
            ("ttl", "soon", "90d"),
            ("ttl", "0s", "more than 0"),
            ("retry_timeout", 0, "more than 0"),
            ("password", "", "non-empty"),
        ],
    )
    def test_an_unknown_value_says_what_is_expected(
        self, tmp_path: Path, option: str, value: Any, expected: str
    ) -> None:
        with pytest.raises(ConfigurationError, match=f"option '{option}' from argument: .*{expected}"):
            settings(tmp_path, "inprocess:x", **{option: value})

    def test_an_option_that_stands_twice_in_the_query_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="schema"):
            settings(tmp_path, "inprocess:x?schema=auto&schema=ignore")

    def test_an_owner_that_is_no_owner(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(InvalidOwnerError):
            settings(tmp_path, "inprocess:x", owner=" x")
        monkeypatch.setenv("CHATKEEP_URL", "inprocess:x")
        monkeypatch.setenv("CHATKEEP_OWNER", " x")
        with pytest.raises(ConfigurationError, match="CHATKEEP_OWNER"):
            settings(tmp_path)

    def test_errors_about_options_hold_no_password(self, tmp_path: Path) -> None:
        for url in ("postgresql://app:hunter2@db/x?nonsense=1", "postgresql+none://app:hunter2@db/x"):
            with pytest.raises(ConfigurationError) as caught:
                settings(tmp_path, url)
            assert "hunter2" not in str(caught.value)


class TestSchemaMode:
    @pytest.mark.parametrize(
        ("url", "mode"), [("inprocess:", "migrate"), ("sqlite:///x.db", "migrate"), ("postgresql://db/x", "validate")]
    )
    def test_auto_migrates_embedded_engines_and_validates_servers(self, tmp_path: Path, url: str, mode: str) -> None:
        assert settings(tmp_path, url).request.schema == mode
        assert settings(tmp_path, url, schema="auto").request.schema == mode
        assert settings(tmp_path, url, schema="IGNORE").request.schema == "ignore"


class TestParsers:
    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            (DAY, 86_400),
            (90, 90),
            (0.25, 0.25),
            ("90", 90),
            ("1.5", 1.5),
            ("500ms", 0.5),
            ("10us", 1e-5),
            ("30s", 30),
            ("5m", 300),
            ("12h", 43_200),
            ("90d", 90 * 86_400),
            ("2w", 14 * 86_400),
            ("1h 30m", 5_400),
            ("1h30m", 5_400),
            (" 1d ", 86_400),
            ("1.5h", 5_400),
            ("P30D", 30 * 86_400),
            ("PT1H30M", 5_400),
        ],
    )
    def test_durations(self, value: Any, seconds: float) -> None:
        assert parse_duration(value).total_seconds() == pytest.approx(seconds)

    @pytest.mark.parametrize(
        "value",
        [
            "",
            " ",
            "d",
            "1y",
            "1 day",
            "1d,2h",
            "1d x",
            "x1d",
            "1e3",
            "--5",
            "P",
            "PX",
            True,
            None,
            [],
            b"1d",
            "9" * 40,
            1e300,
        ],
    )
    def test_what_is_no_duration(self, value: Any) -> None:
        with pytest.raises(ValueError, match="duration such as 90d"):
            parse_duration(value)

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
    def test_numbers_that_are_none(self, value: float) -> None:
        with pytest.raises(ValueError):
            parse_duration(value)

    @pytest.mark.parametrize("value", [None, NEVER, "never", "Never", " NEVER "])
    def test_no_expiry(self, value: Any) -> None:
        assert parse_ttl(value) is None

    @pytest.mark.parametrize("value", ["0s", -1, "-P1D", "200000d"])
    def test_lives_are_positive_and_bounded(self, value: Any) -> None:
        with pytest.raises(ValueError, match="more than 0 and at most 100 years"):
            parse_ttl(value)

    def test_seconds(self) -> None:
        assert parse_seconds("500ms") == 0.5
        with pytest.raises(ValueError, match="more than 0"):
            parse_seconds("0")

    def test_counts(self) -> None:
        parse = parse_count(1, 100)
        assert [parse(value) for value in (1, "100", "007")] == [1, 100, 7]
        for value in (0, 101, "0", "-1", "", "1.0", 1.0, True, None, "x", "9" * 5000):
            with pytest.raises(ValueError, match=r"1 to 100|digits"):
                parse(value)

    def test_choices(self) -> None:
        parse = parse_choice("on", "off")
        assert [parse(value) for value in ("on", "OFF")] == ["on", "off"]
        for value in ("", "yes", None, True):
            with pytest.raises(ValueError, match="on, off"):
                parse(value)

    def test_texts(self) -> None:
        assert parse_text("x y") == "x y"
        for value in ("", "a\0", None, 5):
            with pytest.raises(ValueError, match="non-empty text"):
                parse_text(value)


def test_open_repository_reads_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chatkeep.toml").write_text('url = "inprocess:"\nowner = "ann"\n')
    with open_repository() as repository:
        assert (repository.backend, repository.owner) == ("inprocess", "ann")
