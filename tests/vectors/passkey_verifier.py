# SPDX-License-Identifier: Apache-2.0
"""The part of the second verifier that judges passkeys, and what was said with one.

Like `verifier.py` it is made from docs/formats alone and uses nothing of Sealpoint.
"""

import base64
import json
import re
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from tests.vectors.reading import require, sha256

__all__ = ["check_proof", "read_passkey"]

_FIELDS = ["credential", "relying_party", "origin", "backup_eligible"]
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_LABEL = "(?!-)[a-z0-9-]{1,63}(?<!-)"
_UP, _UV, _BE, _BS, _AT, _ED = 1, 4, 8, 16, 64, 128


def read_passkey(public: str, binding: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The id of a passkey, and the passkey, if a roster may have it."""
    require(list(binding) == _FIELDS and type(binding["backup_eligible"]) is bool, "binding")
    require(re.fullmatch("([0-9a-f]{2}){1,1023}", binding["credential"]), "credential")
    found = re.fullmatch(
        rf"(https?)://({_LABEL}(?:\.{_LABEL})*)(?::([1-9]\d{{0,4}}))?", binding["origin"], re.ASCII
    )
    require(found, "origin")
    scheme, host, port = found.groups() if found else ("", "", None)
    require(len(host) <= 253 and not host.split(".")[-1].isdigit(), "host")
    require(scheme == "https" or host.split(".")[-1] == "localhost", "secure")
    require(port is None or int(port) < 65536, "port")
    require((scheme, port) not in {("https", "443"), ("http", "80")}, "one spelling")
    domains = [".".join(host.split(".")[at:]) for at in range(host.count(".") + 1)]
    require(binding["relying_party"] in domains, "relying party")
    return sha256(public.encode()), {**binding, "key": _public_key(public), "public": public}


def _public_key(public: str) -> Any:
    name, digits = public.split(":")
    require(re.fullmatch("([0-9a-f]{2})+", digits), "digits")
    raw = bytes.fromhex(digits)
    if name == "es256":
        require(len(raw) == 64, "two coordinates")
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + raw)
    if name == "eddsa":
        return Ed25519PublicKey.from_public_bytes(raw)
    require(name == "rs256" and len(raw) in {256, 384, 512}, "algorithm")
    require(raw[0] & 0x80 and raw[-1] & 1, "modulus")
    return rsa.RSAPublicNumbers(65537, int.from_bytes(raw)).public_key()


def check_proof(passkey: dict[str, Any], proof: bytes, message: bytes) -> None:
    """Raise unless a passkey has signed a framed message."""
    first = int.from_bytes(proof[:2])
    client_data, rest = proof[2 : 2 + first], proof[2 + first :]
    second = int.from_bytes(rest[:2])
    data, signature = rest[2 : 2 + second], rest[2 + second :]
    require((len(client_data), len(data)) == (first, second), "lengths")
    require(first <= 1024 and 37 <= second <= 256 and 1 <= len(signature) <= 512, "bounds")
    _check_client_data(client_data, passkey["origin"], bytes.fromhex(sha256(message)))
    flags = data[32]
    require(data[:32].hex() == sha256(passkey["relying_party"].encode()), "relying party")
    require(flags & _UP and flags & _UV, "a verified user")
    require(bool(flags & _BE) == passkey["backup_eligible"], "backup")
    require(flags & _BE or not flags & _BS, "backed up")
    require(not flags & _AT and (second > 37) == bool(flags & _ED), "length")
    _check_signature(passkey["key"], signature, data + bytes.fromhex(sha256(client_data)))


def _check_client_data(data: bytes, origin: str, challenge: bytes) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(pairs)) == len(pairs), "a name twice")
        return dict(pairs)

    def refuse(text: str) -> None:
        require(not text, "no number")

    found = json.loads(data.decode(), object_pairs_hook=once, parse_constant=refuse)
    wanted = base64.urlsafe_b64encode(challenge).decode().rstrip("=")
    require(found["type"] == "webauthn.get" and found["challenge"] == wanted, "challenge")
    require(found["origin"] == origin, "origin")
    require(found.get("crossOrigin", False) is False and "topOrigin" not in found, "frame")


def _check_signature(key: Any, signature: bytes, message: bytes) -> None:
    if isinstance(key, Ed25519PublicKey):
        key.verify(signature, message)
    elif isinstance(key, rsa.RSAPublicKey):
        key.verify(signature, message, padding.PKCS1v15(), SHA256())
    else:
        r, s = utils.decode_dss_signature(signature)
        require(utils.encode_dss_signature(r, s) == signature and s <= _ORDER // 2, "one of two")
        key.verify(signature, message, ec.ECDSA(SHA256()))
