# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that reads keys and rosters.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.vectors.passkey_verifier import read_passkey
from tests.vectors.reading import DIGEST, as_time, require, sha256

__all__ = ["keeps_rights", "read_key", "read_roster"]

_SMALL_ORDER = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_PRIME = 2**255 - 19


def read_key(text: str) -> tuple[str, Ed25519PublicKey]:
    """The id of a key, and the key, if it is not a weak one."""
    raw = bytes.fromhex(text)
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    weak = {0, 1, _PRIME - 1, _SMALL_ORDER, _PRIME - _SMALL_ORDER}
    require(raw.hex() == text and len(raw) == 32 and y < _PRIME and y not in weak, "key")
    return sha256(raw), Ed25519PublicKey.from_public_bytes(raw)


def read_roster(document: dict[str, Any]) -> dict[str, Any]:
    """The identities by name and by key, and the pools."""
    people = {each["name"]: each for each in document["identities"]}
    pools = {pool["name"]: set(pool["members"]) for pool in document["pools"]}
    keys: dict[str, Any] = {}
    passkeys: dict[str, Any] = {}
    expires, once = {}, list[str]()
    for person in people.values():
        for each in person["keys"]:
            key_id = _held(person, each, keys, passkeys)
            once += [each["public"].split(":")[-1]]
            once += [each["passkey"]["credential"]] if "passkey" in each else []
            expires[key_id] = each["expires"]
            require(each["expires"] is None or as_time(each["expires"]), "expiry")
    require(len(set(once)) == len(once), "a key twice")
    require(len(people) == len(document["identities"]), "a name twice")
    require(len(pools) == len(document["pools"]) and not pools.keys() & people.keys(), "pools")
    require(all(members <= people.keys() for members in pools.values()), "members")
    require(document["cuts"] == [], "cuts")
    require(all(map(DIGEST.fullmatch, document["policies"].values())), "policies")
    quorum = document["restore_quorum"]
    found = {"people": people, "keys": keys, "passkeys": passkeys, "pools": pools}
    return found | {"expires": expires, "quorum": quorum, "policies": document["policies"]}


def _held(
    person: dict[str, Any], each: dict[str, Any], keys: dict[str, Any], passkeys: dict[str, Any]
) -> str:
    """Enter a key of somebody with the others of its scheme; its id."""
    fields = ["scheme", "public", "expires"]
    if each["scheme"] == "webauthn":
        require(list(each) == [*fields, "passkey"], "fields")
        key_id, passkey = read_passkey(each["public"], each["passkey"])
        passkeys[key_id] = (person, passkey)
    else:
        require(each["scheme"] == "ed25519" and list(each) == fields, "scheme")
        key_id, key = read_key(each["public"])
        keys[key_id] = (person, key)
    return key_id


def keeps_rights(now: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether a roster takes no right away that an earlier one gave."""
    for name, old in before["people"].items():
        new = now["people"][name]
        spaces = set(new["namespaces"])
        if not (
            set(old["roles"]) <= set(new["roles"])
            and old["person"] == new["person"]
            and all(_lasting(key) in map(_lasting, new["keys"]) for key in old["keys"])
            and ("*" in spaces or set(old["namespaces"]) <= spaces)
        ):
            return False
    return all(members <= now["pools"][name] for name, members in before["pools"].items())


def _lasting(key: dict[str, Any]) -> dict[str, Any]:
    """What never changes about a key."""
    return {name: value for name, value in key.items() if name != "expires"}
