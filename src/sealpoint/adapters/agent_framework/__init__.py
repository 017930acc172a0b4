# SPDX-License-Identifier: Apache-2.0
"""Microsoft Agent Framework on a sealed store."""

from sealpoint.adapters.face import extra_missing

try:
    import agent_framework  # noqa: F401 - an extra
except ImportError as exc:
    raise extra_missing("agent-framework", ("agent_framework",), exc) from exc

__all__: list[str] = []
