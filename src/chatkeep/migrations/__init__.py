"""Shipped schema files and the one way to apply them: files.py reads, plan.py decides, runner.py acts on a target."""
