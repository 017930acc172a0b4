# SPDX-License-Identifier: Apache-2.0
"""The verbs `sealpoint scan` and `sealpoint model`."""
