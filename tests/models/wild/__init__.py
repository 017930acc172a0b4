# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as people have them: written by the trainers and packages themselves."""
