"""A store to a repository, and a factory of stores to a backend with its own URL scheme."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Sequence

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.backends.custom.backend import StoreBackend
from chatkeep.backends.custom.calling import AsyncCaller, SyncCaller, translated
from chatkeep.backends.custom.state import StoreState
from chatkeep.backends.custom.store import AsyncChatMemoryStore, ChatMemoryStore
from chatkeep.backends.plugin import BackendPlugin, OpenRequest, Option
from chatkeep.capabilities import Capabilities
from chatkeep.errors import ConfigurationError
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.repository import Calls
from chatkeep.storage.runner import RETRY_SECONDS, SyncRunner, async_runner

NEED_MORE_THAN_FOUR_VERBS = (
    "stable_positions",
    "conversation_metadata",
    "ttl",
    "purge",
    "native_expiry",
    "context",
    "token_counts",
    "bounded_cost",
)
_NAME = re.compile("[a-z][a-z0-9_]*")
_STATE = "_chatkeep_state"
_states: weakref.WeakValueDictionary[str, StoreState] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def repository_over(
    store: ChatMemoryStore, *, owner: str = "", retry_seconds: float = RETRY_SECONDS
) -> ChatMemoryRepository:
    """The full repository over a store of your own. Closing it closes the store.

    Several repositories over one store object may be open at once; they share its lock and its versions.
    Raises ConfigurationError for an AsyncChatMemoryStore and for capabilities that four verbs can't carry.
    """
    if isinstance(store, AsyncChatMemoryStore):
        raise ConfigurationError(
            f"{type(store).__name__} is an asynchronous store; open it with async_repository_over, "
            f"or by its URL with open_async_repository"
        )
    backend = _backend(store, type(store).__name__, _state_of(store))
    return ChatMemoryRepository(Calls(backend, owner), SyncRunner(retry_seconds))


def async_repository_over(
    store: ChatMemoryStore | AsyncChatMemoryStore, *, owner: str = "", retry_seconds: float = RETRY_SECONDS
) -> AsyncChatMemoryRepository:
    """As `repository_over`, awaited. A synchronous store runs in worker threads."""
    backend = _backend(store, type(store).__name__, _state_of(store))
    return AsyncChatMemoryRepository(Calls(backend, owner), async_runner(backend, retry_seconds))


def store_plugin(
    name: str,
    factory: Callable[..., ChatMemoryStore] | None = None,
    *,
    async_factory: Callable[..., AsyncChatMemoryStore] | None = None,
    schemes: Sequence[str] = (),
    options: Sequence[Option] = (),
) -> BackendPlugin:
    """A backend for `register_backend` or the entry-point group `chatkeep.backends`.

    `factory(url, **options)` makes the store of a URL (an `sqlalchemy.engine.URL`; its `database` is what follows
    `name:`, its `host` and `password` are there for services);
    `async_factory` the one for `open_async_repository`, which otherwise runs the first one's stores in threads.
    `schemes` are `name` unless given. Repositories of equal URLs share a lock and versions within the process.
    """
    if factory is None and async_factory is None:
        raise ConfigurationError(f"store_plugin({name!r}): give factory, async_factory or both")
    for text in (name, *schemes):
        if not _NAME.fullmatch(text):
            raise ConfigurationError(f"store_plugin: {text!r} is no URL scheme; letters a-z, digits and _ are")

    def open_store(request: OpenRequest) -> StoreBackend:
        if request.asynchronous and async_factory is not None:
            return _opened(name, async_factory, request)
        if factory is not None:
            return _opened(name, factory, request)
        raise ConfigurationError(f"the {name} store is asynchronous; open it with open_async_repository")

    return BackendPlugin(
        name=name, schemes=tuple(schemes) or (name,), open=open_store, options=tuple(options), embedded=True
    )


def _opened(
    name: str, factory: Callable[..., ChatMemoryStore | AsyncChatMemoryStore], request: OpenRequest
) -> StoreBackend:
    with translated(name, "open"):
        store = factory(request.url, **request.options)
    if isinstance(store, AsyncChatMemoryStore) and not request.asynchronous:
        raise ConfigurationError(f"the {name} store is asynchronous; open it with open_async_repository")
    return _backend(store, name, _state_of(store, _place(name, request)))


def _backend(store: ChatMemoryStore | AsyncChatMemoryStore, name: str, state: StoreState) -> StoreBackend:
    if isinstance(store, AsyncChatMemoryStore):
        own_append = type(store).append is not AsyncChatMemoryStore.append
        caller: SyncCaller | AsyncCaller = AsyncCaller(name, store)
    elif isinstance(store, ChatMemoryStore):
        own_append = type(store).append is not ChatMemoryStore.append
        caller = SyncCaller(name, store)
    else:
        raise ConfigurationError(
            f"{name}: expected a ChatMemoryStore or an AsyncChatMemoryStore, got {type(store).__name__}"
        )
    capabilities = _checked_capabilities(store, name, own_append)
    return StoreBackend(name, caller, state, capabilities, own_append=own_append)


def _checked_capabilities(store: ChatMemoryStore | AsyncChatMemoryStore, name: str, own_append: bool) -> Capabilities:
    """What the store claims, where it can be true: an untrue claim would be trusted by callers."""
    claimed = store.capabilities
    if type(claimed) is not Capabilities:
        raise ConfigurationError(f"{name}: capabilities must be a Capabilities, got {type(claimed).__name__}")
    for capability in NEED_MORE_THAN_FOUR_VERBS:
        if getattr(claimed, capability):
            raise ConfigurationError(f"{name}: a store of four verbs can't offer {capability!r}; don't claim it")
    if claimed.native_async and not isinstance(store, AsyncChatMemoryStore):
        raise ConfigurationError(f"{name}: only an AsyncChatMemoryStore can claim 'native_async'")
    if claimed.shared_between_processes:
        if claimed.conditional_writes:
            raise ConfigurationError(
                f"{name}: versions live in one process, so 'conditional_writes' and 'shared_between_processes' "
                f"can't both be claimed"
            )
        if claimed.concurrent_appends and not own_append:
            raise ConfigurationError(
                f"{name}: the lock of an append holds in one process; to claim 'concurrent_appends' together with "
                f"'shared_between_processes', override append() with one step of your engine"
            )
    return claimed


def _place(name: str, request: OpenRequest) -> str:
    options = sorted(request.options.items(), key=lambda option: option[0])
    return f"{name} {request.url.set(password=None).render_as_string()} {options!r}"


def _state_of(store: ChatMemoryStore | AsyncChatMemoryStore, place: str | None = None) -> StoreState:
    """One state for a store object, and one for all stores of a place."""
    with _lock:
        state: StoreState | None = getattr(store, _STATE, None) if place is None else _states.get(place)
        if state is None:
            state = StoreState(parallel=bool(getattr(store, "parallel", False)))
            if place is not None:
                _states[place] = state
            elif isinstance(store, (ChatMemoryStore, AsyncChatMemoryStore)):
                # Not by setattr, which a frozen dataclass refuses.
                store.__dict__[_STATE] = state
        return state
