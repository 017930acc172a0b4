# SPDX-License-Identifier: Apache-2.0
"""One file per threat of docs/security/threat-model.md."""
