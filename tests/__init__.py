# SPDX-License-Identifier: Apache-2.0
"""Everything that checks the package; see CONTRIBUTING.md for what each folder claims."""
