# SPDX-License-Identifier: Apache-2.0
"""Stories: what people do with the whole of it, in processes of their own."""
