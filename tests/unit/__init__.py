# SPDX-License-Identifier: Apache-2.0
"""One file per source file, one claim per test."""
