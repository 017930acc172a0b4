# SPDX-License-Identifier: Apache-2.0
"""Settings, and the files of a store on this machine: its pin and its keys.

The only reader of the environment, and the only place where key and pin files are read or
written. What lies in them is the business of `sealpoint.signing`.
"""

from sealpoint.config._files import StoreFiles, read_pin_file
from sealpoint.config._names import check_identity_name
from sealpoint.config._settings import Settings, load_settings
from sealpoint.config._url import StoreUrl

__all__ = [
    "Settings",
    "StoreFiles",
    "StoreUrl",
    "check_identity_name",
    "load_settings",
    "read_pin_file",
]
