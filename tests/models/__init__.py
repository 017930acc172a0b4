# SPDX-License-Identifier: Apache-2.0
"""Model files with the trainers themselves: real packages, tiny models, no network."""
