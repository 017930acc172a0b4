# SPDX-License-Identifier: Apache-2.0
"""Calls that other OS threads make. A store that was closed takes none."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sealpoint.errors import UsageError

__all__ = ["call", "submit"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def call(
    pool: ThreadPoolExecutor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> _T:
    return await asyncio.wrap_future(submit(pool, function, *args, **kwargs))


def submit(
    pool: ThreadPoolExecutor, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
) -> Future[_T]:
    try:
        return pool.submit(function, *args, **kwargs)
    except RuntimeError as exc:
        raise UsageError("store: expected an open store, found it closed") from exc
