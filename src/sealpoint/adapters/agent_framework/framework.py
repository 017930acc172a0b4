# SPDX-License-Identifier: Apache-2.0
"""A registry with the framework's own types and no other, for those who only look.

On the command line: `--registry sealpoint.adapters.agent_framework.framework:registry`.
"""

from sealpoint.adapters.agent_framework._types import allow_framework_types
from sealpoint.codec import Registry

__all__ = ["registry"]

registry = Registry()
"""Allows messages, contents and what else Agent Framework stores by itself."""

allow_framework_types(registry)
