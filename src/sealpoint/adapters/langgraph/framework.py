# SPDX-License-Identifier: Apache-2.0
"""A registry with the frameworks' own types and no other, for those who only look.

On the command line: `--registry sealpoint.adapters.langgraph.framework:registry`.
"""

from sealpoint.adapters.langgraph._types import allow_framework_types
from sealpoint.codec import Registry

__all__ = ["registry"]

registry = Registry()
"""Allows messages, documents and what else LangGraph stores by itself."""

allow_framework_types(registry)
