# SPDX-License-Identifier: Apache-2.0
"""Files that are meant to get past a scan."""
