"""How a memory is put together from what a person gave: checks first, then kind, boundary and operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.errors import UnsupportedOperationError
from chatkeep.memory.limits import Limit, check_choice, check_flag, check_limit_given
from chatkeep.memory.operations import DeleteOperations, KeepOperations, Operations, Settings
from chatkeep.memory.rules import Boundary, Kind, MessageBoundary, TurnBoundary
from chatkeep.repository import ChatMemoryRepository

if TYPE_CHECKING:
    from chatkeep.storage.repository import Calls

R = TypeVar("R", bound="ChatMemoryRepository | AsyncChatMemoryRepository")
BoundaryName: TypeAlias = Literal["turn", "message"]
Eviction: TypeAlias = Literal["keep", "delete"]
OnOverflow: TypeAlias = Literal["keep", "error"]


class MemoryOver(Generic[R]):
    """A memory over a repository of either form."""

    _form: type[R]
    repository: R
    _operations: Operations

    def _prepare(
        self,
        repository: R,
        kind: Kind,
        limit: Limit,
        boundary: str,
        always_keep_system_message_first: bool,
        eviction: str,
        on_overflow: str,
    ) -> None:
        check_repository(repository, self._form, type(self).__name__)
        self.repository = repository
        self.limit = check_limit_given(limit, kind.parameter)
        self.boundary = check_choice(boundary, "boundary", "turn", "message")
        self.eviction = check_choice(eviction, "eviction", "keep", "delete")
        self.on_overflow = check_choice(on_overflow, "on_overflow", "keep", "error")
        first = check_flag(always_keep_system_message_first, "always_keep_system_message_first")
        rule: Boundary = TurnBoundary() if boundary == "turn" else MessageBoundary(system_first=first)
        if eviction == "delete":
            require(repository, "conditional_writes", 'eviction="delete"')
        operations = KeepOperations if eviction == "keep" else DeleteOperations
        self._kind = kind
        self._settings = Settings(self._calls, kind, rule, self.limit, on_overflow, repository._runner.retry_seconds)
        self._operations = operations(self._settings)

    def _calls(self) -> Calls:
        return self.repository._calls

    def __repr__(self) -> str:
        limit = "dynamic" if callable(self.limit) else self.limit
        return f"<{type(self).__name__} {self._kind.parameter}={limit} over {self.repository!r}>"


def require(repository: ChatMemoryRepository | AsyncChatMemoryRepository, capability: str, what: str) -> None:
    """A capability of the backend, without which the memory would only be right most of the time."""
    if not getattr(repository.capabilities, capability):
        raise UnsupportedOperationError(
            f"{what} needs {capability!r}, which the {repository.backend} backend does not offer"
        )


def check_repository(repository: Any, form: type, name: str) -> None:
    """A repository of the memory's own form."""
    if isinstance(repository, form):
        return
    other = {ChatMemoryRepository: AsyncChatMemoryRepository, AsyncChatMemoryRepository: ChatMemoryRepository}[form]
    hint = ""
    if isinstance(repository, other):
        hint = f"; use {name.removeprefix('Async') if name.startswith('Async') else f'Async{name}'}"
    raise TypeError(f"repository: expected {form.__name__}, got {type(repository).__name__}{hint}")
