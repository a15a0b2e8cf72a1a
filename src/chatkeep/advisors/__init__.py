"""Advisors: a model that remembers. Each works on what is sent; the turn is stored once, whole, when it succeeded."""

from chatkeep.advisors.chain import Advised, advise
from chatkeep.advisors.message import MessageChatMemoryAdvisor
from chatkeep.advisors.model import Answer, AsyncModel, Chunk, Model
from chatkeep.advisors.prompt import DEFAULT_TEMPLATE, PromptChatMemoryAdvisor
from chatkeep.advisors.request import Advisor, Request
from chatkeep.advisors.stream import AsyncChatStream, ChatStream
from chatkeep.advisors.vector_store import RECALL_TEMPLATE, VectorStoreChatMemoryAdvisor

__all__ = [
    "DEFAULT_TEMPLATE",
    "RECALL_TEMPLATE",
    "Advised",
    "Advisor",
    "Answer",
    "AsyncChatStream",
    "AsyncModel",
    "ChatStream",
    "Chunk",
    "MessageChatMemoryAdvisor",
    "Model",
    "PromptChatMemoryAdvisor",
    "Request",
    "VectorStoreChatMemoryAdvisor",
    "advise",
]
