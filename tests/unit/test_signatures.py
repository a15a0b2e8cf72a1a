"""The synchronous and the asynchronous class offer the same methods with the same arguments and the same promises."""

import inspect
import typing

import pytest

import chatkeep
from chatkeep import AsyncChatMemoryRepository, ChatMemoryRepository

SYNC = {name: found for name, found in inspect.getmembers(ChatMemoryRepository) if not name.startswith("_")}
ASYNC = {name: found for name, found in inspect.getmembers(AsyncChatMemoryRepository) if not name.startswith("_")}
METHODS = [name for name, found in SYNC.items() if inspect.isfunction(found)]
PLAIN = ["for_owner"]
"""Without I/O, so a plain call in both forms."""
BEYOND = ["__enter__/__aenter__", "__exit__/__aexit__"]


def test_both_forms_have_the_same_names() -> None:
    assert set(SYNC) == set(ASYNC)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_the_same_signature_in_both_forms(name: str) -> None:
    """Names, kinds, defaults and types of the arguments, and the type of the result."""
    one, two = inspect.signature(SYNC[name]), inspect.signature(ASYNC[name])
    assert one.parameters == two.parameters
    assert one.return_annotation == two.return_annotation
    hints = typing.get_type_hints(SYNC[name])
    assert hints == typing.get_type_hints(ASYNC[name])
    assert set(hints) == {*one.parameters, "return"} - {"self"}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_awaited_in_the_asynchronous_form_alone(name: str) -> None:
    assert not inspect.iscoroutinefunction(SYNC[name])
    assert inspect.iscoroutinefunction(ASYNC[name]) == (name not in PLAIN)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_its_contract_in_both_forms(name: str) -> None:
    """Written once, on the synchronous class."""
    assert SYNC[name].__doc__
    assert ASYNC[name].__doc__ == SYNC[name].__doc__


@pytest.mark.parametrize("pair", BEYOND)
def test_both_forms_are_context_managers(pair: str) -> None:
    one, two = pair.split("/")
    sync, asynchronous = getattr(ChatMemoryRepository, one), getattr(AsyncChatMemoryRepository, two)
    assert inspect.signature(sync).parameters == inspect.signature(asynchronous).parameters
    assert inspect.iscoroutinefunction(asynchronous)


def test_both_forms_are_opened_alike() -> None:
    one, two = (inspect.signature(each) for each in (chatkeep.open_repository, chatkeep.open_async_repository))
    assert one.parameters == two.parameters
    assert inspect.iscoroutinefunction(chatkeep.open_async_repository)
