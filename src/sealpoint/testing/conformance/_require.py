# SPDX-License-Identifier: Apache-2.0
"""How a conformance suite says that a promise was broken: without any test framework."""

__all__ = ["require"]


def require(condition: bool, message: str) -> None:  # noqa: FBT001 - reads as an assertion
    """Fail a test with the promise that was broken.

    Raises:
        AssertionError: The condition does not hold.
    """
    if not condition:
        raise AssertionError(message)
