"""A store of your own as a chatkeep backend: implement four verbs, derive the rest. See docs/own-store.md."""

from chatkeep.backends.custom.opening import async_repository_over, repository_over, store_plugin
from chatkeep.backends.custom.store import AsyncChatMemoryStore, ChatMemoryStore
from chatkeep.backends.plugin import BackendPlugin, Option
from chatkeep.registry import register_backend

__all__ = [
    "AsyncChatMemoryStore",
    "BackendPlugin",
    "ChatMemoryStore",
    "Option",
    "async_repository_over",
    "register_backend",
    "repository_over",
    "store_plugin",
]
