"""The command `chatkeep`. Its modules import what they need when a command runs, so that `--help` is quick."""

from chatkeep.cli.app import app, main

__all__ = ["app", "main"]
