"""C21 injection and secrets: values are always bound, and what must not be printed is not printed."""

from __future__ import annotations

import datetime as dt
import json
import logging
import traceback

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatkeep import ChatkeepError, ChatMemoryRepository, Message, StoredDataError
from chatkeep.conformance.contract.c08_lossless import in_one_repository
from chatkeep.conformance.corpus import NASTY_TEXTS, ODD_IDS
from chatkeep.conformance.fixtures import Opened
from chatkeep.conformance.harness import Form, Harness, needs
from chatkeep.conformance.strategies import storable
from chatkeep.conformance.support import new_id, said
from chatkeep.storage.backend import DirectoryKey
from chatkeep.storage.checks import directory_cursor

SECRET = "hunter2-s3cret"

fragments = st.sampled_from(
    [
        *ODD_IDS,
        *NASTY_TEXTS.values(),
        "'",
        '"',
        "`",
        "\\",
        ";",
        "--",
        "/*",
        "*/",
        "$$",
        "{",
        "}",
        "%",
        ":a",
        "?",
        "\n",
        "x",
    ]
)
hostile_texts = st.lists(fragments, max_size=5).map("".join).filter(storable)
hostile_ids = hostile_texts.map(lambda text: "".join(filter(str.isprintable, text)).strip()[:200] or "x")


class TestC21Injection:
    """Text that looks like code is text."""

    @in_one_repository
    @given(name=hostile_ids, text=hostile_texts, key=hostile_texts)
    @example(name="x'; DROP TABLE chat_message; --", text="'); DELETE FROM chat_message; --", key="a' OR '1'='1")
    @example(name="%", text="{0.__class__} {instructions} ${env:HOME}", key="%(a)s")
    def test_hostile_values_are_stored_as_they_are(
        self, repository: ChatMemoryRepository, name: str, text: str, key: str
    ) -> None:
        """As id, owner, message id, content, metadata key and title, through every call; the neighbour is untouched."""
        owner = repository.for_owner(f"{new_id('owner')} {name}"[:255].strip())
        message = Message("user", Message.user(text).parts, id=f"m {name}"[:255].strip(), metadata={key: {key: text}})
        owner.append(name, message)
        owner.append(name, said(1, name))
        assert owner.find_by_conversation_id(name)[0] == message
        assert owner.find_conversation_ids() == [name]
        assert owner.history(name).items[0].message == message
        if owner.capabilities.conversation_metadata:
            assert owner.update_conversation(name, metadata={key: text}).metadata == {key: text}
        assert [conversation.id for conversation in owner.list_conversations().items] == [name]
        assert owner.delete_messages(name, [message.id]) == 1
        owner.save_all(name, [message])
        assert owner.find_by_conversation_id(name, limit=3) == [message]
        assert owner.delete_by_conversation_id(name) is True

    @pytest.mark.parametrize(
        "text",
        [
            "{}",
            "{0}",
            "{instructions}",
            "{memory}",
            "{{",
            "}}",
            "{user.password}",
            "%(message)s",
            "%s %d",
            "${HOME}",
            "$x",
        ],
    )
    def test_templates_never_parse_user_text(
        self, repository: ChatMemoryRepository, conversation_id: str, text: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Braces and percent signs in ids, content and keys, also while everything is logged."""
        caplog.set_level(logging.DEBUG)
        name = f"{conversation_id} {text}"
        message = Message.user(text, id=f"{new_id('m')} {text}", name=text, metadata={text: text})
        repository.append(name, message)
        with pytest.raises(ChatkeepError) as caught:
            repository.append(name, Message.user("other", id=message.id))
        assert text in str(caught.value)
        assert repository.find_by_conversation_id(name) == [message]

    def test_a_foreign_cursor_is_refused(self, owned: ChatMemoryRepository) -> None:
        """Cursors are checked like any input: no error of the engine, no page of something else."""
        for _ in range(3):
            owned.append(new_id(), said(1))
        cursor = owned.list_conversations(limit=1).next_cursor
        assert cursor is not None
        forged = [
            directory_cursor("id", DirectoryKey(conversation_id))
            for conversation_id in ("a\0b", "", " a", "a" * 256, "a\nb")
        ]
        for bad in ("", "x", "'; --", "AAAA", cursor[:-2], cursor + "AAAA", "ünï", "p1", json.dumps(["id", {}])):
            with pytest.raises(ValueError, match="cursor"):
                owned.list_conversations(cursor=bad)
        for bad in forged:
            with pytest.raises(ValueError, match=r"cursor|id"):
                owned.list_conversations(cursor=bad)
        for moment in (None, dt.datetime(2026, 1, 1)):
            with pytest.raises(ValueError, match="cursor"):
                owned.list_conversations(cursor=directory_cursor("updated", DirectoryKey("a", moment)), order="updated")
        with pytest.raises(ValueError, match="cursor"):
            owned.list_conversations(cursor=cursor, order="updated")
        with pytest.raises(TypeError, match="cursor"):
            owned.list_conversations(cursor=1)  # type: ignore[arg-type]


class TestC21Secrets:
    """Passwords and message content in logs, reprs and errors."""

    def test_nothing_shown_holds_message_content(
        self, repository: ChatMemoryRepository, conversation_id: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """At the most talkative log level, in every error that a message can cause, and in the repository's repr."""
        caplog.set_level(logging.DEBUG)
        secret = f"{SECRET}-{new_id('content')}"
        message = Message.user(secret, metadata={"key": secret}, name=secret)
        repository.append(conversation_id, message)
        repository.save_all(conversation_id, [message])
        repository.find_by_conversation_id(conversation_id)
        shown = [repr(repository), str(repository)]
        too_large = Message.user(secret * (repository.capabilities.max_message_bytes // len(secret) + 1))
        for refused in (Message.user(f"other {secret}", id=message.id), too_large):
            with pytest.raises(ChatkeepError) as caught:
                repository.append(conversation_id, refused)
            shown += traceback.format_exception_only(caught.value)
        with pytest.raises(ChatkeepError) as caught:
            repository.append(conversation_id, said(1), expected_version=1)
        shown += traceback.format_exception_only(caught.value)
        shown += [record.getMessage() + repr(record.args) for record in caplog.records]
        assert not [text for text in shown if secret in text]

    @needs("overwrite_message")
    def test_the_error_of_a_broken_row_holds_no_content(
        self, harness: Harness, namespace: str, repository: ChatMemoryRepository, conversation_id: str
    ) -> None:
        """It names the row and the reason."""
        (message,) = said(1, SECRET)
        repository.append(conversation_id, message)
        for body in (f'{{"format": "chatkeep/1", "parts": "{SECRET}"}}', f"{SECRET}{{", f'"{SECRET}"'):
            harness.overwrite_message(namespace, message.id, body=body)
            with pytest.raises(StoredDataError) as caught:
                repository.find_by_conversation_id(conversation_id)
            assert SECRET not in str(caught.value)

    @needs("unreachable_url")
    def test_a_password_is_never_shown(
        self, harness: Harness, form: Form, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """In no repr, error with all its causes, log record or output, whether given in the URL or as an option."""
        caplog.set_level(logging.DEBUG)
        shown: list[str] = []

        def attempt(url: str, **options: str) -> None:
            with pytest.raises(ChatkeepError) as caught:
                with harness.open(form, url, retry_timeout="0.2", **options) as repository:
                    shown.append(repr(repository))
                    repository.find_conversation_ids()
            shown.extend(traceback.format_exception(caught.value, chain=True, limit=0))

        url = harness.unreachable_url(SECRET)
        assert SECRET in url
        for schema in ("validate", "ignore"):
            attempt(url, schema=schema)
        attempt(harness.unreachable_url("wrong"), schema="ignore", password=SECRET)
        for wrong in ("nosuchoption=1", "ttl=never-ever", f"nosuchoption={SECRET}", f"password={SECRET}&ttl=x"):
            attempt(f"{url}{'&' if '?' in url else '?'}{wrong}")
        attempt(url.replace(":", "+nosuchdriver:", 1))
        for ambiguous in ("?", "?x=", "?ttl=", "%00", "%", "#", "@", "&"):
            attempt(harness.unreachable_url(f"begin{ambiguous}{SECRET}"), schema="ignore")
        attempt(url.replace(url.partition(":")[0], "nosuchscheme", 1))
        for broken in (url.replace("://", ":///"), url.replace("@", ":99999@"), url.replace("@", "@["), url[1:]):
            try:
                attempt(broken, schema="ignore")
            except BaseException as error:
                shown.extend(traceback.format_exception_only(error))
        shown += [record.getMessage() + repr(record.args) for record in caplog.records]
        shown += capfd.readouterr()
        assert not [text for text in shown if SECRET in text]

    def test_a_repr_tells_what_it_is(self, harness: Harness, opened: Opened) -> None:
        """Class, backend, owner and whether it is closed; no URL."""
        repository = opened(owner="someone")
        assert harness.backend in repr(repository)
        assert "someone" in repr(repository)
        assert "closed" not in repr(repository)
        repository.close()
        assert "closed" in repr(repository)
