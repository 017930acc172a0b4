# SPDX-License-Identifier: Apache-2.0
"""Settings for all tests: Hypothesis without deadlines, so that a busy machine fails nothing.

Examples are the same in every run; `make soak` and the fuzz programs look for new ones.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "sealpoint",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("sealpoint")
