# SPDX-License-Identifier: Apache-2.0
"""Claims about all values, searched for counterexamples by Hypothesis."""
