# SPDX-License-Identifier: Apache-2.0
"""The demo that `make demo-openclaw-live` runs: a real gateway, guarded, edited and refused.

Only the model is a stand-in. SEALPOINT_OPENCLAW names the folder with `node` and `openclaw`.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import mkdtemp

from live_gateway import INSTALL, LiveGateway, Refused
from model_stand_in import serving_model
from recorded_gateway import STATE, edit
from screen import say, scene, tell

_OPEN = """UPDATE exec_approvals_config SET raw_json =
    '{"version": 1, "agents": {"main": {"security": "full", "ask": "off"}}}'"""


def main() -> int:
    installed = os.environ.get("SEALPOINT_OPENCLAW")
    if not installed:
        print("This demo needs OpenClaw, 760 MB, in a folder of your choice:", file=sys.stderr)
        print(INSTALL, file=sys.stderr)
        print("    SEALPOINT_OPENCLAW=DIR make demo-openclaw-live", file=sys.stderr)
        return 2
    tell("Sealpoint demo: a real OpenClaw gateway. Each start takes up to a minute.")
    with serving_model() as port:
        gateway = LiveGateway(Path(installed), Path(mkdtemp(prefix="sealpoint-demo-")), port)
        try:
            show(gateway)
        finally:
            gateway.end()
    return 0


def show(gateway: LiveGateway) -> None:
    scene("1. Seal the folder, and start the gateway with the guard")
    gateway.make()
    gateway.start()
    say("started", "the plugin asks the guard before each run and tool call")
    gateway.turn('call exec {"command": "echo hello"}')
    assert gateway.unfinished == []
    say("turn", "the model called exec, OpenClaw asked, and the demo allowed it once")
    gateway.stop()
    say("stopped", "everything that the gateway wrote is sealed")
    copy = gateway.home / "copy"
    gateway.copy_to(copy)

    scene("2. Somebody edits one row while the gateway is stopped")
    say("attack", "the approval policy of commands is opened")
    edit(gateway.folder, STATE, _OPEN)
    start(gateway)

    scene("3. The folder is put back")
    gateway.put_back(copy)
    start(gateway)
    tell(f"It is all in {gateway.home}; delete it when you are done.")


def start(gateway: LiveGateway) -> None:
    tell("$ sealpoint openclaw run -- openclaw gateway")
    try:
        gateway.start()
    except Refused as refused:
        error = re.search(r"sealpoint: (.*) \[([a-z-]+)\]", str(refused))
        if error is None:
            raise
        say("refused", f"{error[2]}: {error[1].removeprefix(f'{gateway.folder}: ')}")
    else:
        say("started", "nothing differs from the seal")
        gateway.stop()


if __name__ == "__main__":
    sys.exit(main())
