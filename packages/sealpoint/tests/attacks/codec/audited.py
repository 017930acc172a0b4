# SPDX-License-Identifier: Apache-2.0
"""A program that decodes genuine and mutated values while the interpreter reports what it does.

The audit hook is armed only while bytes are decoded. What it saw is printed as JSON: each event
with its count, how many decodings there were, and what kind of results they had.
"""

import json
import random
import sys
from collections import Counter
from typing import Any

from sealpoint.errors import DecodeError
from tests.application import make_registry
from tests.attacks.codec import samples
from tests.blobs import Blobs

_MUTATIONS = 60

armed = False
seen: Counter[str] = Counter()
details: dict[str, str] = {}


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if armed:
        seen[event] += 1
        details.setdefault(event, repr(arguments)[:200])


def _mutated(data: bytes, source: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(changed))
        match source.randrange(4):
            case 0:
                changed[place] = source.randrange(256)
            case 1:
                changed[place] = source.choice([*range(35), 0x80, 0x90, 0xC7, 0xD4])
            case 2:
                changed[place:place] = source.randbytes(source.randint(1, 4))
            case _:
                del changed[place : place + source.randint(1, 4)]
        if not changed:
            break
    return bytes(changed)


def main() -> dict[str, Any]:
    """Decode everything with the hook armed, and return what it saw."""
    global armed  # noqa: PLW0603 # a hook cannot be taken off again, so it has a switch
    registry = make_registry()
    source = random.Random(7)  # noqa: S311 # mutations are to be the same in every run
    encodings = [registry.encode(each) for each in samples.ALL]
    encodings.append(registry.encode(list(samples.ALL)))
    mutations = [_mutated(data, source) for data in encodings for _ in range(_MUTATIONS)]
    blobs = Blobs()
    root = registry.encode_tree({"all": list(samples.ALL) * 20}, blobs.put)
    results: Counter[str] = Counter()
    sys.addaudithook(_hook)
    for data in (*encodings, *mutations):
        armed = True
        try:
            registry.decode(data)
            armed = False
            results["decoded"] += 1
        except DecodeError:
            armed = False
            results["refused"] += 1
    armed = True
    registry.decode_tree(root, blobs.get)
    armed = False
    control = Counter(seen)
    armed = True
    with open("/dev/null", "rb"):  # noqa: PTH123 # the control: this the hook must see
        pass
    compile("1", "control", "eval")
    armed = False
    return {
        "events": control,
        "details": {event: details[event] for event in control},
        "control": sorted(set(seen) - set(control)),
        "results": results,
    }


if __name__ == "__main__":
    print(json.dumps(main()))  # noqa: T201 # a program's result
