# SPDX-License-Identifier: Apache-2.0
"""What the logins of a PostgreSQL store can do with nothing but their passwords."""
