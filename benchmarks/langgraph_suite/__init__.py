# SPDX-License-Identifier: Apache-2.0
"""LangGraph's own tests with `SealedSaver` in the place of the in-memory saver."""
