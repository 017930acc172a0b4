# SPDX-License-Identifier: Apache-2.0
"""Model files: loading what others wrote without running it."""
