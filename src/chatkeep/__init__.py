"""chatkeep: one repository for LLM chat memory and history, with one contract on every database."""

from chatkeep.async_repository import AsyncChatMemoryRepository
from chatkeep.capabilities import Capabilities
from chatkeep.conversation import Conversation, HistoryEntry, Page, PurgeReport
from chatkeep.errors import (
    ChatkeepError,
    ConcurrentChangeError,
    ConfigurationError,
    ContentionError,
    ConversationNotFoundError,
    EmbeddingError,
    InvalidAnswerError,
    InvalidConversationIdError,
    InvalidMessageError,
    InvalidOwnerError,
    MessageTooLargeError,
    Outcome,
    RepositoryClosedError,
    SchemaError,
    StorageAccessError,
    StorageCapacityError,
    StorageConnectionError,
    StorageError,
    StorageTimeoutError,
    StoredDataError,
    TurnNotStoredError,
    UnstorableValueError,
    UnsupportedOperationError,
    WindowOverflowError,
)
from chatkeep.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from chatkeep.opening import open_async_repository, open_repository
from chatkeep.repository import ChatMemoryRepository
from chatkeep.storage.record import NEVER

__version__ = "0.1.0"

__all__ = [
    "NEVER",
    "AsyncChatMemoryRepository",
    "Capabilities",
    "ChatMemoryRepository",
    "ChatkeepError",
    "ConcurrentChangeError",
    "ConfigurationError",
    "ContentionError",
    "Conversation",
    "ConversationNotFoundError",
    "EmbeddingError",
    "HistoryEntry",
    "InvalidAnswerError",
    "InvalidConversationIdError",
    "InvalidMessageError",
    "InvalidOwnerError",
    "Media",
    "Message",
    "MessageTooLargeError",
    "Opaque",
    "Outcome",
    "Page",
    "Part",
    "PurgeReport",
    "RepositoryClosedError",
    "SchemaError",
    "StorageAccessError",
    "StorageCapacityError",
    "StorageConnectionError",
    "StorageError",
    "StorageTimeoutError",
    "StoredDataError",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolResult",
    "TurnNotStoredError",
    "UnstorableValueError",
    "UnsupportedOperationError",
    "WindowOverflowError",
    "open_async_repository",
    "open_repository",
]
