# SPDX-License-Identifier: Apache-2.0
"""A process that tells a hook events: `python -m tests.console.teller URL SECRET STATE FIRST LAST`.

It says `kept` once they are in the outbox, and goes on until it is killed or its input ends.
"""

import sys
from datetime import UTC, datetime
from pathlib import Path

from sealpoint_console._hook_delivery import Pace
from sealpoint_console._notification_events import ConsoleEvent
from sealpoint_console._notifier import Notifier
from sealpoint_console.settings import ConsoleSettings, HookSettings


def main(url: str, secret: str, state: str, first: str, last: str) -> None:
    """Tell events, by their numbers, and wait."""
    hook = HookSettings(name="desk", url=url, secret_file=secret)
    settings = ConsoleSettings(hooks=(hook,), state_dir=Path(state))
    notifier = Notifier(
        settings, store_id="store:00", namespace="default", pace=Pace(first_wait_s=0.02)
    )
    notifier.start()
    for number in range(int(first), int(last)):
        notifier.tell(
            ConsoleEvent(id=f"e{number}", kind="paused", time=datetime.now(UTC), page="/threads/0")
        )
    sys.stdout.write("kept\n")
    sys.stdout.flush()
    sys.stdin.read()
    notifier.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
