"""The fixtures of the suite: the form, a namespace per test module, repositories on it, and the neighbour.

A module shares one namespace, since making one can be slow; tests use random ids, and owners of their own where they
list or purge. Every test runs beside a neighbour conversation that must be untouched afterwards.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from chatkeep import ChatMemoryRepository, Message
from chatkeep.conformance.harness import Form, Harness, skip_unmet
from chatkeep.conformance.support import new_id

FIXTURES = (
    "conversation_id",
    "form",
    "fresh_url",
    "long_lived",
    "namespace",
    "neighbour",
    "opened",
    "owned",
    "repository",
    "unconfigured",
    "witness",
)


class Opened(Protocol):
    """Opens a repository of the test's form on the module's namespace, or on `url`; closed after the test."""

    def __call__(self, url: str | None = None, **options: Any) -> ChatMemoryRepository: ...


def harness_fixture(make: Callable[[], Harness]) -> Any:
    """The fixture `harness` of a test module, made by the harness's class or any function."""

    @pytest.fixture(scope="module", name="harness")
    def harness() -> Iterator[Harness]:
        made = make()
        yield made
        made.close()

    return harness


@pytest.fixture(scope="module")
def namespace(harness: Harness) -> Iterator[str]:
    """The URL of the namespace that the module's tests share."""
    url = harness.fresh_url()
    yield url
    harness.drop(url)


@pytest.fixture
def fresh_url(harness: Harness) -> Iterator[Callable[[], str]]:
    """Makes a namespace for this test alone: for what touches more than one conversation can."""
    made: list[str] = []

    def fresh() -> str:
        made.append(harness.fresh_url())
        return made[-1]

    yield fresh
    for url in made:
        harness.drop(url)


@pytest.fixture(params=["sync", "async"])
def form(request: pytest.FixtureRequest) -> Form:
    """Whether the test runs on ChatMemoryRepository or on AsyncChatMemoryRepository."""
    form: Form = request.param
    return form


@pytest.fixture
def opened(harness: Harness, form: Form, namespace: str) -> Iterator[Opened]:
    """Opens repositories of the test's form; see Opened."""
    with contextlib.ExitStack() as stack:

        def open_one(url: str | None = None, **options: Any) -> ChatMemoryRepository:
            repository = harness.open(form, namespace if url is None else url, **options)
            stack.callback(repository.close)
            return repository

        yield open_one


@pytest.fixture(scope="module")
def long_lived(harness: Harness, namespace: str) -> Iterator[Callable[[Form], ChatMemoryRepository]]:
    """One repository for each form, for all tests of the module that don't ask for one of their own."""
    repositories: dict[Form, ChatMemoryRepository] = {}

    def of_form(form: Form) -> ChatMemoryRepository:
        if form not in repositories:
            repositories[form] = harness.open(form, namespace)
        return repositories[form]

    yield of_form
    for repository in repositories.values():
        repository.close()


@pytest.fixture
def repository(form: Form, long_lived: Callable[[Form], ChatMemoryRepository]) -> ChatMemoryRepository:
    """A repository of the test's form on the module's namespace; it is shared, so no test closes it."""
    return long_lived(form)


@pytest.fixture
def owned(repository: ChatMemoryRepository) -> ChatMemoryRepository:
    """The handle of a new owner, in which a test is alone although the namespace is shared."""
    return repository.for_owner(new_id("owner"))


@pytest.fixture
def conversation_id() -> str:
    """An id that no other test uses."""
    return new_id()


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty working directory and no CHATKEEP_* settings: nothing of the machine reaches the test."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("CHATKEEP_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def witness(harness: Harness, namespace: str) -> Iterator[ChatMemoryRepository]:
    """The repository that watches the neighbour."""
    with harness.open("sync", namespace) as repository:
        yield repository


@pytest.fixture(autouse=True)
def neighbour(harness: Harness, request: pytest.FixtureRequest) -> Iterator[str | None]:
    """Skips what the harness can't run; then gives the test a neighbour and sees that it is untouched afterwards."""
    skip_unmet(harness, request)
    if "namespace" not in request.fixturenames:
        yield None
        return
    witness: ChatMemoryRepository = request.getfixturevalue("witness")
    neighbour_id = new_id("neighbour")
    said = [Message.user("Who lives here?", metadata={"n": 1}), Message.assistant("I do.", name="neighbour")]
    witness.append(neighbour_id, said)
    before = witness.get_conversation(neighbour_id)
    yield neighbour_id
    assert witness.find_by_conversation_id(neighbour_id) == said, "the neighbour's messages changed"
    assert witness.get_conversation(neighbour_id) == before, "the neighbour's directory entry changed"
