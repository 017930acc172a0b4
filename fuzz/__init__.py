# SPDX-License-Identifier: Apache-2.0
"""Programs that try to break the claims of the package with made-up input: `python -m fuzz`."""
