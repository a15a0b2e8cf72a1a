"""The error tree: one root, the built-in kinds that callers expect, and texts that help."""

import inspect
import pickle

import pytest

import chatkeep
from chatkeep import errors

TREE = {
    "ConfigurationError": "ChatkeepError",
    "InvalidMessageError": "ChatkeepError",
    "MessageTooLargeError": "InvalidMessageError",
    "UnstorableValueError": "ChatkeepError",
    "InvalidConversationIdError": "ChatkeepError",
    "InvalidOwnerError": "ChatkeepError",
    "ConversationNotFoundError": "ChatkeepError",
    "ConcurrentChangeError": "ChatkeepError",
    "WindowOverflowError": "ChatkeepError",
    "RepositoryClosedError": "ChatkeepError",
    "StoredDataError": "ChatkeepError",
    "UnsupportedOperationError": "ChatkeepError",
    "StorageError": "ChatkeepError",
    "StorageConnectionError": "StorageError",
    "StorageAccessError": "StorageError",
    "StorageTimeoutError": "StorageError",
    "ContentionError": "StorageError",
    "StorageCapacityError": "StorageError",
    "SchemaError": "StorageError",
}


def test_the_tree_is_what_its_docstring_draws() -> None:
    classes = {
        name: found for name, found in vars(errors).items() if inspect.isclass(found) and issubclass(found, Exception)
    }
    assert {name: found.__bases__[0].__name__ for name, found in classes.items() if name != "ChatkeepError"} == TREE
    drawn = [line.split("─ ")[1].split()[0] for line in (errors.__doc__ or "").splitlines() if "─ " in line]
    assert sorted(drawn) == sorted(TREE)


def test_every_error_is_public_and_documented() -> None:
    for name in TREE:
        assert getattr(chatkeep, name) is getattr(errors, name)
        assert getattr(errors, name).__doc__


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("InvalidMessageError", ValueError),
        ("MessageTooLargeError", ValueError),
        ("InvalidConversationIdError", ValueError),
        ("InvalidOwnerError", ValueError),
        ("UnstorableValueError", TypeError),
        ("ConversationNotFoundError", LookupError),
    ],
)
def test_errors_are_the_built_in_kinds_that_callers_expect(error: str, kind: type[Exception]) -> None:
    assert issubclass(getattr(errors, error), kind)


def test_a_conflict_names_both_versions() -> None:
    error = errors.ConcurrentChangeError("thread", expected=3, actual=5)
    assert (error.conversation_id, error.expected, error.actual) == ("thread", 3, 5)
    assert "3" in str(error)
    assert "5" in str(error)
    assert "does not exist" in str(errors.ConcurrentChangeError("thread", expected=3, actual=0))


def test_stored_data_errors_name_the_row() -> None:
    error = errors.StoredDataError("broken", conversation_id="thread", position=7)
    assert str(error) == "conversation 'thread', position 7: broken"
    assert str(errors.StoredDataError("broken")) == "broken"


def test_a_storage_error_was_not_applied_unless_it_says_otherwise() -> None:
    assert errors.StorageError("x").outcome is errors.Outcome.NOT_APPLIED
    assert errors.SchemaError("x", backend="sqlite", outcome=errors.Outcome.UNKNOWN).outcome is errors.Outcome.UNKNOWN


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidMessageError("x"),
        errors.StorageError("x", backend="sqlite", outcome=errors.Outcome.UNKNOWN),
        errors.MessageTooLargeError("x", size=2, limit=1),
        errors.ConcurrentChangeError("thread", expected=3, actual=5),
        errors.StoredDataError("broken", conversation_id="thread", position=7),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_process_borders(error: Exception) -> None:
    """A worker of a process pool or of Celery hands its error over by pickle."""
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)
