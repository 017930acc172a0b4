# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests: Hypothesis without deadlines, so that a busy machine fails nothing."""

from hypothesis import settings

settings.register_profile("sealpoint", deadline=None, print_blob=True)
settings.load_profile("sealpoint")
