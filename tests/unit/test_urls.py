"""Repository URLs: passwords with anything in them, names with anything in them, and nothing secret in a message."""

import traceback
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import URL

from chatkeep import ConfigurationError
from chatkeep.urls import parse_url, shown, split_scheme


@pytest.mark.parametrize(
    ("text", "user", "password", "host", "port", "database"),
    [
        ("postgresql://app:secret@db/chat", "app", "secret", "db", None, "chat"),
        ("postgresql://app:secret@db:5433/chat", "app", "secret", "db", 5433, "chat"),
        ("postgresql://app@db/chat", "app", None, "db", None, "chat"),
        ("postgresql://app:@db/chat", "app", "", "db", None, "chat"),
        ("postgresql://db/chat", None, None, "db", None, "chat"),
        ("postgresql:///chat", None, None, None, None, "chat"),
        ("postgresql://app:p@ss:w/rd#1@db:5433/chat", "app", "p@ss:w/rd#1", "db", 5433, "chat"),
        ("postgresql://app:p%40ss%3Aw%2Frd%23%3F%25@db/chat", "app", "p@ss:w/rd#?%", "db", None, "chat"),
        ("postgresql://app:100%@db/chat", "app", "100%", "db", None, "chat"),
        ("postgresql://app:a b+c&d=e;f@db/chat", "app", "a b+c&d=e;f", "db", None, "chat"),
        ("postgresql://app:pässwörd😀@db/chat", "app", "pässwörd😀", "db", None, "chat"),
        ("postgresql://us%40er:x@db/chat", "us@er", "x", "db", None, "chat"),
        ("postgresql://app:x@[::1]:5433/chat", "app", "x", "::1", 5433, "chat"),
        ("sqlite:///chat.db", None, None, None, None, "chat.db"),
        ("sqlite:////var/lib/chat.db", None, None, None, None, "/var/lib/chat.db"),
        ("sqlite:///a@b.db", None, None, None, None, "a@b.db"),
        ("sqlite:////home/me@work/chat.db", None, None, None, None, "/home/me@work/chat.db"),
        ("sqlite:///C:/me@work/chat.db", None, None, None, None, "C:/me@work/chat.db"),
        ("sqlite:", None, None, None, None, ""),
        ("inprocess:", None, None, None, None, ""),
        ("inprocess:name", None, None, None, None, "name"),
        ("inprocess:a@b", None, None, None, None, "a@b"),
        ("inprocess:a/b:c@d", None, None, None, None, "a/b:c@d"),
        ("  inprocess:name\n", None, None, None, None, "name"),
    ],
)
def test_the_parts_of_a_url(
    text: str, user: str | None, password: str | None, host: str | None, port: int | None, database: str
) -> None:
    url = parse_url(text)
    assert (url.username, url.password, url.host or None, url.port) == (user, password, host, port)
    assert (url.database or "") == database


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="?%\0"), max_size=30))
def test_a_password_works_as_it_is(password: str) -> None:
    url = parse_url(f"postgresql://app:{password}@db:5433/chat")
    assert (url.username, url.password, url.host, url.port, url.database) == ("app", password, "db", 5433, "chat")


WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=30)


@given(WORDS, WORDS.filter(bool))
def test_a_password_works_encoded(password: str, user: str) -> None:
    url = URL.create("postgresql", user, password, "db", 5433, "chat")
    text = f"postgresql://{quote(user, safe='')}:{quote(password, safe='')}@db:5433/chat"
    assert parse_url(text) == url


def test_options_of_the_query() -> None:
    assert dict(parse_url("sqlite:///chat.db?synchronous=normal&busy=3").query) == {
        "synchronous": "normal",
        "busy": "3",
    }
    assert dict(parse_url("inprocess:name?a=%20b").query) == {"a": " b"}
    assert parse_url("inprocess:name?a=x").database == "name"


@pytest.mark.parametrize("text", ["", "chat.db", "/var/lib/chat.db", "//db/chat", ":x", "1x:y", None, 5, b"sqlite://"])
def test_what_has_no_scheme_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite:///chat\.db"):
        parse_url(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["postgresql://app:hunter2@db:port/chat", "postgresql://app:hunter2@[::1/chat"])
def test_a_url_that_cannot_be_parsed_shows_no_password(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_url(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["postgresql://app:hunter2@db/chat?password=hunter2", "neo4j://app:hunter2@db:7687?token=hunter2"]
)
def test_what_is_shown_of_a_url_holds_no_password(text: str) -> None:
    url = parse_url(text)
    assert "hunter2" not in shown(url)
    assert "hunter2" not in repr(url.set(query={}))
    assert "***" in shown(url)


def test_schemes_and_drivers() -> None:
    assert split_scheme(parse_url("postgresql+psycopg://db/x")) == ("postgresql", "psycopg")
    assert split_scheme(parse_url("PostgreSQL://db/x")) == ("postgresql", None)


def test_the_traceback_of_a_bad_url_shows_no_password_in_chatkeeps_own_lines() -> None:
    try:
        parse_url("postgresql://app:hunter2@db:port/chat")
    except ConfigurationError as error:
        shown_lines = traceback.format_exception_only(error)
    assert "hunter2" not in "".join(shown_lines)


@pytest.mark.parametrize(
    "text", ["postgresql://app:%00@db/x", "sqlite:///a%00b", "inprocess:a\0b", "postgresql://db\0/x"]
)
def test_a_url_with_nul_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_url(text)
