# SPDX-License-Identifier: Apache-2.0
"""A sample of fuzzing, and proof that fuzzing would notice a fault."""
