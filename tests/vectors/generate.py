# SPDX-License-Identifier: Apache-2.0
"""Write the frozen vectors anew: `python -m tests.vectors.generate`. There must be no diff.

What a vector must give is said here, in words, values and error codes, and never taken from a
decoder. A vector made from a value is canonical: encoding the value gives these bytes. A vector
made from bytes is one that no writer writes, accepted or refused.
"""

import json
from pathlib import Path
from typing import Any

from sealpoint.limits import Limits
from tests.vectors import flat, refused, trees
from tests.vectors.gate import gate_vectors
from tests.vectors.key_changes import key_change_vectors
from tests.vectors.lanes import lane_vectors
from tests.vectors.ledger import ledger_vectors
from tests.vectors.model_files import model_file_vectors
from tests.vectors.passkeys import passkey_vectors
from tests.vectors.releases import release_vectors
from tests.vectors.rendering import deep_values
from tests.vectors.retention import retention_vectors
from tests.vectors.rules import rules_as_data

__all__ = ["FILES", "frozen"]

FOLDER = Path(__file__).parent
FILES = (
    *("rules.json", "values.json", "trees.json", "ledger.json", "key_changes.json"),
    *("retention.json", "gate.json", "lanes.json", "releases.json", "model_files.json"),
    "passkeys.json",
)


def _lines(vectors: list[dict[str, Any]]) -> str:
    """One vector to a line, so that a diff shows which one changed."""
    return "[\n" + ",\n".join(json.dumps(vector) for vector in vectors) + "\n]\n"


def frozen() -> dict[str, str]:
    """Every frozen file, by its name, with the text it must have."""
    limits = {name: getattr(Limits(), name) for name in Limits.__dataclass_fields__}
    rules = {"limits": limits, "rules": rules_as_data()}
    with deep_values():
        values, roots = _lines([*flat.accepted(), *refused.refused()]), _lines(trees.vectors())
    chains = (
        *(ledger_vectors(), key_change_vectors(), retention_vectors(), gate_vectors()),
        *(lane_vectors(), release_vectors(), model_file_vectors(), passkey_vectors()),
    )
    texts = (json.dumps(rules, indent=1) + "\n", values, roots, *chains)
    return dict(zip(FILES, texts, strict=True))


def main() -> None:
    """Write the files, and say which."""
    for name, text in frozen().items():
        (FOLDER / name).write_text(text, encoding="ascii")
        print(f"{name}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
