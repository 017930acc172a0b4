# SPDX-License-Identifier: Apache-2.0
"""Stores and shared anchors in PostgreSQL, and provisioning of their databases.

The core opens URLs with the scheme `postgresql` with this package. An administrator creates and
changes a database with `provision_postgres` and `rotate_postgres_login`, or with
`sealpoint provision postgres`.
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
