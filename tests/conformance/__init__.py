# SPDX-License-Identifier: Apache-2.0
"""Every backend and anchor passes the suites of sealpoint.testing.conformance."""
