"""What a forked child must do first: another thread of the parent may have held any lock at the moment of the fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from types import MethodType

_methods: list[weakref.WeakMethod[Callable[[], None]]] = []
_functions: list[Callable[[], None]] = []


def call_in_child(renew: Callable[[], None]) -> None:
    """Call `renew` in every child that is forked from now on. Bound methods are held weakly."""
    if isinstance(renew, MethodType):
        _methods[:] = [method for method in _methods if method() is not None]
        _methods.append(weakref.WeakMethod(renew))
    else:
        _functions.append(renew)


def _in_child() -> None:
    for function in _functions:
        function()
    for method in _methods:
        renew = method()
        if renew is not None:
            renew()


class Lock:
    """A lock that is free again in a forked child: `with lock.now:`.

    `now` is the lock itself and not a method around it: between a C lock's `__enter__` and the body no signal handler
    runs, so that an exception out of one can't leave it locked.
    """

    def __init__(self) -> None:
        self._renew()
        call_in_child(self._renew)

    def _renew(self) -> None:
        self.now = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
