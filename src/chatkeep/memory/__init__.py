"""Memories: what a model sees of a conversation. The log stays whole in the repository, a memory is a view of it."""

from chatkeep.memory.estimators import HeuristicTokenCountEstimator, OpenAiTokenCountEstimator
from chatkeep.memory.memory import AsyncChatMemory, AsyncConversationMemory, ChatMemory, ConversationMemory
from chatkeep.memory.message_window import AsyncMessageWindowChatMemory, MessageWindowChatMemory
from chatkeep.memory.summary import AsyncSummarizingChatMemory, SummarizingChatMemory
from chatkeep.memory.token_window import AsyncTokenWindowChatMemory, TokenWindowChatMemory
from chatkeep.memory.tokens import TokenCountEstimator
from chatkeep.memory.turn_window import AsyncTurnWindowChatMemory, TurnWindowChatMemory

__all__ = [
    "AsyncChatMemory",
    "AsyncConversationMemory",
    "AsyncMessageWindowChatMemory",
    "AsyncSummarizingChatMemory",
    "AsyncTokenWindowChatMemory",
    "AsyncTurnWindowChatMemory",
    "ChatMemory",
    "ConversationMemory",
    "HeuristicTokenCountEstimator",
    "MessageWindowChatMemory",
    "OpenAiTokenCountEstimator",
    "SummarizingChatMemory",
    "TokenCountEstimator",
    "TokenWindowChatMemory",
    "TurnWindowChatMemory",
]
