"""C19 URLs: the scheme selects the backend; the unknown is refused with the list of the known; drivers load late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from chatkeep import ConfigurationError, InvalidOwnerError, open_repository
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Form, Harness
from chatkeep.conformance.support import new_id, run_program, said

WHAT_IS_IMPORTED = """
    import sys
    import chatkeep
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""

WITHOUT_DRIVERS = """
    import sys
    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in sys.argv[2].split(","):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Missing())
    import asyncio
    import chatkeep
    chatkeep.open_repository("inprocess:").close()
    async def opening():
        async with await chatkeep.open_async_repository(sys.argv[1]) as repository:
            await repository.find_conversation_ids()
    for form in ("sync", "async"):
        try:
            if form == "sync":
                with chatkeep.open_repository(sys.argv[1]) as repository:
                    repository.find_conversation_ids()
            else:
                asyncio.run(opening())
        except chatkeep.ConfigurationError as error:
            print(error)
"""


def with_query(url: str, query: str) -> str:
    """The URL with one more option in its query."""
    return f"{url}{'&' if '?' in url else '?'}{query}"


@pytest.mark.usefixtures("unconfigured")
class TestC19Urls:
    """What a URL says, and what is said about one that is wrong."""

    def test_the_scheme_selects_the_backend(self, harness: Harness, opened: Opened) -> None:
        """Every scheme of the backend, in upper case too."""
        assert opened().backend == harness.backend
        assert harness.schemes
        url = harness.fresh_url()
        try:
            scheme, _, rest = url.partition(":")
            assert scheme in harness.schemes
            for spelled in (*harness.schemes, scheme.upper()):
                repository = opened(f"{spelled}:{rest}")
                assert repository.backend == harness.backend
                repository.close()
        finally:
            harness.drop(url)

    @pytest.mark.parametrize(
        "url", ["nosuch:", "nosuch://host/db", "jdbc:x", "postgres//host", "chat.db", "", "://", "1"]
    )
    def test_an_unknown_scheme_is_refused_with_the_known(self, harness: Harness, form: Form, url: str) -> None:
        """Never a guess: no fallback to some backend."""
        with pytest.raises(ConfigurationError) as caught:
            harness.open(form, url)
        for scheme in harness.schemes if ":" in url and url.partition(":")[0] else ():
            assert scheme in str(caught.value)

    def test_an_unknown_driver_is_refused(self, harness: Harness, form: Form, namespace: str) -> None:
        """Behind the `+`, with the known ones."""
        scheme, _, rest = namespace.partition(":")
        with pytest.raises(ConfigurationError, match=r"(?s)nosuchdriver.*known"):
            harness.open(form, f"{scheme.partition('+')[0]}+nosuchdriver:{rest}")

    def test_an_unknown_option_is_refused_with_the_known(self, harness: Harness, form: Form, namespace: str) -> None:
        """In the query and as a keyword: a misspelt option never passes for none."""
        with pytest.raises(ConfigurationError, match=r"(?s)on_unreadible.*on_unreadable"):
            harness.open(form, with_query(namespace, "on_unreadible=keep"))
        with pytest.raises(ConfigurationError, match=r"(?s)on_unreadible.*on_unreadable"):
            harness.open(form, namespace, on_unreadible="keep")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("on_unreadable", "maybe"),
            ("schema", "create"),
            ("ttl", "soon"),
            ("ttl", "-1s"),
            ("ttl", "0"),
            ("retry_timeout", "-1"),
            ("owner", "a\nb"),
        ],
    )
    def test_an_unknown_value_is_refused(
        self, harness: Harness, form: Form, namespace: str, name: str, value: str
    ) -> None:
        """In the query and as a keyword, naming the option."""
        quoted = value.replace("\n", "%0A")
        with pytest.raises(ConfigurationError, match=name):
            harness.open(form, with_query(namespace, f"{name}={quoted}"))
        with pytest.raises((ConfigurationError, InvalidOwnerError), match=name):
            harness.open(form, namespace, **{name: value})

    @pytest.mark.parametrize("query", ["nosuchoption", "nosuchoption=", "schema=", "ttl=", "&nosuchoption&"])
    def test_an_option_without_a_value_is_refused(
        self, harness: Harness, form: Form, namespace: str, query: str
    ) -> None:
        """An unknown word or an empty value in the query is no less unknown: nothing of a URL is passed over."""
        with pytest.raises(ConfigurationError):
            harness.open(form, with_query(namespace, query)).close()

    @pytest.mark.parametrize("url", [1, b"inprocess:", ["inprocess:"]])
    def test_a_url_is_text(self, harness: Harness, form: Form, url: Any) -> None:
        """Or SQLAlchemy's URL."""
        with pytest.raises(ConfigurationError, match="url"):
            harness.open(form, url)

    def test_an_option_means_the_same_in_both_places(
        self, harness: Harness, opened: Opened, namespace: str, conversation_id: str
    ) -> None:
        """The query of the URL and the keyword, which wins; and SQLAlchemy's URL object."""
        owner = new_id("owner")
        can_expire = harness.expected_capabilities.ttl
        in_query = opened(with_query(namespace, f"owner={owner}" + "&ttl=1h" * can_expire))
        as_keyword = opened(namespace, owner=owner)
        both = opened(with_query(namespace, "owner=nobody"), owner=owner)
        assert (in_query.owner, as_keyword.owner, both.owner) == (owner, owner, owner)
        in_query.append(conversation_id, said(1))
        assert as_keyword.count_messages(conversation_id) == 1
        assert (as_keyword.history(conversation_id).items[0].expires_at is not None) == can_expire
        if "//" in namespace:
            assert opened(make_url(namespace)).backend == in_query.backend  # type: ignore[arg-type]

    def test_without_a_url_the_environment_counts(
        self, harness: Harness, form: Form, namespace: str, conversation_id: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """CHATKEEP_URL and its companions; an argument wins over them."""
        owner = new_id("owner")
        monkeypatch.setenv("CHATKEEP_URL", namespace)
        monkeypatch.setenv("CHATKEEP_OWNER", owner)
        with harness.open(form, None) as repository:  # type: ignore[arg-type]
            assert (repository.backend, repository.owner) == (harness.backend, owner)
            repository.append(conversation_id, said(1))
        with harness.open(form, None, owner="") as repository:  # type: ignore[arg-type]
            assert repository.owner == ""

    def test_without_a_url_a_file_counts(
        self, harness: Harness, form: Form, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """[tool.chatkeep] of pyproject.toml, chatkeep.toml before it, the environment before both."""
        (tmp_path / "pyproject.toml").write_text(f"[tool.chatkeep]\nurl = '{namespace}'\nowner = 'project'\n")
        with harness.open(form, None) as repository:  # type: ignore[arg-type]
            assert (repository.backend, repository.owner) == (harness.backend, "project")
        (tmp_path / "chatkeep.toml").write_text(f"url = '{namespace}'\nowner = 'own'\nretry_timeout = '9s'\n")
        with harness.open(form, None) as repository:  # type: ignore[arg-type]
            assert repository.owner == "own"
        monkeypatch.setenv("CHATKEEP_OWNER", "environment")
        with harness.open(form, None) as repository:  # type: ignore[arg-type]
            assert repository.owner == "environment"
        (tmp_path / "chatkeep.toml").write_text(f"url = '{namespace}'\nownr = 'own'\n")
        with pytest.raises(ConfigurationError, match=r"(?s)ownr.*chatkeep\.toml.*owner"):
            harness.open(form, None)  # type: ignore[arg-type]

    def test_without_any_url_it_says_how_to_set_one(self, harness: Harness, form: Form) -> None:
        """There is no default place where messages could silently go."""
        with pytest.raises(ConfigurationError, match=r"(?s)CHATKEEP_URL.*chatkeep\.toml"):
            harness.open(form, None)  # type: ignore[arg-type]


class TestC19Drivers:
    """Imports."""

    def test_importing_chatkeep_imports_no_driver(self, harness: Harness) -> None:
        """Nor the test tools that the suite itself needs."""
        imported = set(run_program(harness, WHAT_IS_IMPORTED).split()) if not harness.child_imports else set()
        assert imported.isdisjoint({*harness.drivers, "psycopg", "aiosqlite", "pytest", "hypothesis", "testcontainers"})

    def test_a_missing_driver_names_the_extra(self, harness: Harness, namespace: str) -> None:
        """Other backends open all the same; the missing one says what to install, in both forms."""
        printed = run_program(harness, WITHOUT_DRIVERS, namespace, ",".join(harness.drivers) or "-")
        expected = 2 * bool(harness.drivers)
        assert printed.count(f"chatkeep[{harness.extra}]") == expected, printed

    def test_a_password_of_any_characters_reaches_the_settings(self, harness: Harness) -> None:
        """Percent-encoded or, where nothing is ambiguous, as it is; or by the option `password`."""
        from chatkeep.config import load_settings

        scheme = harness.schemes[0]
        for password in ("p@ss", "a:b", "a/b", "a%b", "a#b", "a@b:c/d#e", "ü漢😀", "a b", "a?b=c&d", "'\"\\"):
            encoded = "".join(f"%{byte:02X}" for byte in password.encode())
            settings = load_settings(f"{scheme}://user:{encoded}@host/name", {}, asynchronous=False)
            assert settings.request.url.password == password
            settings = load_settings(f"{scheme}://user@host/name", {"password": password}, asynchronous=False)
            assert settings.request.url.password == password
            if not set(password) & set("%?"):
                settings = load_settings(f"{scheme}://user:{password}@host/name", {}, asynchronous=False)
                assert settings.request.url.password == password
                assert settings.request.url.host == "host"

    def test_opening_needs_no_package_metadata(self, harness: Harness, namespace: str) -> None:
        """A URL given as it was shown opens in this process; the shipped schemes need no entry point."""
        with open_repository(namespace) as repository:
            assert repository.backend == harness.backend
