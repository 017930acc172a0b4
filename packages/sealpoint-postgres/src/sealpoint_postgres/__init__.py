# SPDX-License-Identifier: Apache-2.0
"""Stores and shared anchors in PostgreSQL, and databases made ready for them.

URLs with the scheme `postgresql` lead here. What an administrator makes and changes in a database
is `provision_postgres` and `rotate_postgres_login`; the same as `sealpoint provision postgres`.
"""

from sealpoint_postgres._duties import Duty, PostgresChange, PostgresLogin, Provisioned
from sealpoint_postgres._provision import provision_postgres, rotate_postgres_login
from sealpoint_postgres._url import PostgresUrl
from sealpoint_postgres.anchor import PostgresAnchor
from sealpoint_postgres.storage import PostgresStorage

__all__ = [
    "Duty",
    "PostgresAnchor",
    "PostgresChange",
    "PostgresLogin",
    "PostgresStorage",
    "PostgresUrl",
    "Provisioned",
    "provision_postgres",
    "rotate_postgres_login",
]
