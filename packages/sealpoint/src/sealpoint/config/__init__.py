# SPDX-License-Identifier: Apache-2.0
"""Settings, and the files of a store on this machine: its pin and its keys.

This package alone reads the environment, and reads or writes key and pin files. `sealpoint.signing`
defines the content of these files.
"""

from sealpoint.config._application_code import (
    Application,
    Module,
    ModuleOrigin,
    place_in_project,
    read_application,
    read_data_files,
)
from sealpoint.config._backends import StoreUrl, lasting_forms
from sealpoint.config._code_identity import code_of, imported_name
from sealpoint.config._group_sharing import (
    Group,
    group_faults,
    make_shared_directory,
    read_shared_secret,
    share_secret,
)
from sealpoint.config._installed_packages import is_application_file
from sealpoint.config._key_files import KeyFiles
from sealpoint.config._passphrases import (
    PassphraseSource,
    PasswordSource,
    anchor_password,
    choosing,
    environment_passphrase,
    password_files,
    read_passphrase_file,
    read_password_file,
    store_password,
    unlocking,
)
from sealpoint.config._protected_files import replace_file, write_new_file
from sealpoint.config._settings import (
    Settings,
    check_identity_name,
    load_settings,
    read_settings_file,
)
from sealpoint.config._shared_anchor import open_shared_anchor, parse_anchor_url
from sealpoint.config._store_files import (
    StoreFiles,
    kept_roster_entries,
    known_urls,
    read_pin_descriptor,
    read_pin_file,
)

__all__ = [
    "Application",
    "Group",
    "KeyFiles",
    "Module",
    "ModuleOrigin",
    "PassphraseSource",
    "PasswordSource",
    "Settings",
    "StoreFiles",
    "StoreUrl",
    "anchor_password",
    "check_identity_name",
    "choosing",
    "code_of",
    "environment_passphrase",
    "group_faults",
    "imported_name",
    "is_application_file",
    "kept_roster_entries",
    "known_urls",
    "lasting_forms",
    "load_settings",
    "make_shared_directory",
    "open_shared_anchor",
    "parse_anchor_url",
    "password_files",
    "place_in_project",
    "read_application",
    "read_data_files",
    "read_passphrase_file",
    "read_password_file",
    "read_pin_descriptor",
    "read_pin_file",
    "read_settings_file",
    "read_shared_secret",
    "replace_file",
    "share_secret",
    "store_password",
    "unlocking",
    "write_new_file",
]
