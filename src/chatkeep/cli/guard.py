"""Turns errors into one line and an exit code: 0 done, 1 failed, 2 usage, 130 interrupted. Knows no command."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from chatkeep.cli import output, secrets
from chatkeep.cli.given import Given
from chatkeep.cli.text import followed
from chatkeep.errors import ChatkeepError, ConfigurationError, StorageConnectionError, StoredDataError

FAILED = 1
USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
"""What a shell reports for a program that SIGPIPE ended, as `chatkeep export | head` would be."""


class Group(TyperGroup):
    """The group of all commands. Every error of any of them passes through `invoke`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        secrets.learn_from(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as exc:
            _mask_usage(exc)
            raise

    def invoke(self, ctx: Any) -> Any:
        given = ctx.ensure_object(Given)
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (KeyboardInterrupt, typer.Abort):  # Abort: at a question
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(BROKEN_PIPE) from None
        except typer.Exit:
            raise
        except Exception as exc:
            _mask_usage(exc)
            if _is_usage(exc):
                raise
            raise typer.Exit(_report(exc, given)) from exc


def _report(exc: Exception, given: Given) -> int:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()  # what was printed before the error comes before it
    if given.debug:
        output.show_traceback(exc)
    output.error(_text(exc, given))
    return USAGE if isinstance(exc, ConfigurationError) else FAILED


def _text(exc: Exception, given: Given) -> str:
    if isinstance(exc, StoredDataError) and given.can_keep_unreadable:
        return followed(exc, "--keep-unreadable shows such rows as they are")
    if isinstance(exc, StorageConnectionError) and given.command != "doctor":
        return followed(exc, "`chatkeep doctor` checks the connection step by step")
    if isinstance(exc, ChatkeepError):
        return str(exc)
    if isinstance(exc, OSError) and exc.strerror:
        return f"{exc.filename}: {exc.strerror}" if exc.filename else exc.strerror
    seen = "" if given.debug else "; --debug shows where"
    return f"this should not have happened: {type(exc).__name__}: {exc}{seen}"


def _is_usage(exc: Exception) -> bool:
    # Typer brings its own click, older ones need click itself: both mark their errors so.
    return hasattr(exc, "format_message") and hasattr(exc, "exit_code")


def _mask_usage(exc: Exception) -> None:
    """A URL given in the wrong place is repeated in the text of the usage error."""
    if _is_usage(exc) and isinstance(getattr(exc, "message", None), str):
        exc.message = secrets.masked(exc.message)  # type: ignore[attr-defined]


def _forget_stdout() -> None:
    """Nobody reads it any more: let the flush at exit go nowhere, without a word."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
