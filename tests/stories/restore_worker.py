# SPDX-License-Identifier: Apache-2.0
"""A worker in a process of its own: it goes on with each of its threads, and says how that ended.

`python -m tests.stories.restore_worker URL CONFIG STATE THREAD...` resumes every thread, saves the
next step, and prints a JSON object: the step it reached, or the code it was refused with.
"""

import json
import sys

import sealpoint
from sealpoint.errors import SealpointError, UnknownThread

__all__: list[str] = []

_WORLD = {"tools": [{"name": "read"}]}


def _next_step(store: sealpoint.Store, name: str) -> int | str:
    thread = store.thread(name)
    try:
        try:
            step: int = thread.resume(world=_WORLD).state["step"]
        except UnknownThread:
            step = 0
        thread.save({"step": step + 1}, world=_WORLD)
    except SealpointError as error:
        return error.code
    return step + 1


def _main(url: str, config: str, state: str, *threads: str) -> None:
    with sealpoint.open_store(url, config_dir=config, state_dir=state) as store:
        told = {name: _next_step(store, name) for name in threads}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _main(*sys.argv[1:])
