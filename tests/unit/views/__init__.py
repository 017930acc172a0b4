# SPDX-License-Identifier: Apache-2.0
"""What people and programs are shown: values, differences, documents, names."""
