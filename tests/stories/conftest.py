# SPDX-License-Identifier: Apache-2.0
"""Where the stores of the stories lie."""

from pathlib import Path

import pytest

from tests.effort import in_soak
from tests.postgres_server import schema_of, shared_server


@pytest.fixture(params=["sqlite", in_soak("file"), in_soak("postgresql")])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store that every process can open; `tmp_path / "disk"` holds it, or its server.

    The password of a server is where every process looks for it.
    """
    path = tmp_path / "disk" / "agents"
    if request.param != "postgresql":
        return f"{request.param}:///{path}"
    server, secret = shared_server(), tmp_path / "password"
    secret.touch(mode=0o600)
    secret.write_text(f"{server.password}\n")
    monkeypatch.setenv("SEALPOINT_STORE_PASSWORD_FILE", str(secret))
    return server.url(schema=schema_of(path))
