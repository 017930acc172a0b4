# SPDX-License-Identifier: Apache-2.0
"""The backend or the set-up failed."""

from sealpoint.errors._root import SealpointError

__all__ = [
    "ConfigError",
    "DirectoryUnusable",
    "ExtraMissing",
    "KeyFileUnsafe",
    "KeyLocked",
    "KeyMissing",
    "SchemaUnknown",
    "SignerFailed",
    "StorageUnavailable",
    "StoreExists",
    "StoreMisplaced",
]


class StorageUnavailable(SealpointError):
    """The backend failed: the store is gone, locked, full or not writable."""

    code = "storage-unavailable"
    exit_status = 50
    hint = "Nothing was half-written. Make the backend work again and repeat the call."


class SchemaUnknown(StorageUnavailable):
    """The file is no Sealpoint store, or one of a schema that this version does not know."""

    code = "schema-unknown"
    exit_status = 51
    hint = "Check the path, or install the Sealpoint version that wrote the store."


class SignerFailed(SealpointError):
    """A key that lives elsewhere did not sign: its service failed, or signed something else."""

    code = "signer-failed"
    exit_status = 52
    hint = "Nothing was written. Make the signer work again and repeat the call."


class ConfigError(SealpointError):
    """Configuration is missing, malformed or unsafe."""

    code = "config"
    exit_status = 60
    hint = "Correct the file or setting that the message names."


class DirectoryUnusable(ConfigError):
    """A directory for configuration, state or a store of files cannot be used."""

    code = "directory-unusable"
    exit_status = 61
    hint = "Make it a directory of your own, or name another with config_dir= and state_dir=."


class StoreMisplaced(ConfigError):
    """The store lies where its own keys or its anchor lie."""

    code = "store-misplaced"
    exit_status = 62
    hint = "Who can write the store must not reach keys or anchor: put it somewhere else."


class KeyFileUnsafe(ConfigError):
    """A secret file can be read or changed by others, or is not what it should be."""

    code = "key-file-unsafe"
    exit_status = 63
    hint = "chmod 600 the file if nobody else has read it; else make a new key."


class KeyMissing(ConfigError):
    """There is no private key for this identity here."""

    code = "key-missing"
    exit_status = 64
    hint = "sealpoint keys list shows the keys that are here; sealpoint keys new makes one."


class KeyLocked(ConfigError):
    """The private key is encrypted, and its passphrase was not given or does not open it."""

    code = "key-locked"
    exit_status = 66
    hint = (
        "Give its passphrase: passphrase= in Python, SEALPOINT_PASSPHRASE, "
        "SEALPOINT_PASSPHRASE_FILE, or a terminal to ask on."
    )


class ExtraMissing(ConfigError):
    """A part of Sealpoint was imported whose packages are not installed."""

    code = "extra-missing"
    exit_status = 67
    hint = "Install the extra with the command in the message."


class StoreExists(ConfigError):
    """The store is initialised already."""

    code = "store-exists"
    exit_status = 65
    hint = "Open it with open_store(url), or choose another place for a new store."
