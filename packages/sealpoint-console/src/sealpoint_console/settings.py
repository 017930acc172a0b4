# SPDX-License-Identifier: Apache-2.0
"""The settings of the console: the table `[console]` of `config.toml`, checked whole.

Dangerous settings are refused here, before anything listens: an address that others can reach
without TLS, and one where nobody could sign in.
"""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from sealpoint.config import read_settings_file
from sealpoint.errors import ConfigError

__all__ = [
    "CONSOLE_EVENTS",
    "ConsoleSettings",
    "HookSettings",
    "OidcSettings",
    "check_hook_url",
    "is_safe_address",
    "load_console_settings",
]

_LISTEN = "127.0.0.1:8734"
_PORT_MAX = 65535
_HOOK_NAME = re.compile("[a-z0-9._-]{1,64}")
_SHAPES = ("generic", "slack", "teams")
CONSOLE_EVENTS = (
    *("request", "approved", "denied", "broken-glass", "paused", "unpaused", "handed-off"),
    *("deploy-voids", "refused", "unreadable", "unjustified", "resume-wanted", "key-expires"),
)
"""The events that hooks can subscribe to."""


class OidcSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An identity provider."""

    issuer: str
    client_id: str
    client_secret_file: str = ""
    claim: str = "email"
    """The claim with the person's name, as in the roster."""


class HookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The target of events: a webhook, or a command."""

    name: str
    url: str = ""
    url_file: str = ""
    """A file with the address; anyone who knows the address may be able to post there."""
    secret_file: str = ""
    """A file with the signing secret of the webhook: one line, or two during a rotation."""
    command: tuple[str, ...] = ()
    events: tuple[str, ...] = tuple(each for each in CONSOLE_EVENTS if each != "resume-wanted")
    shape: str = "generic"
    """`generic`, `slack` or `teams`."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    listen: str = _LISTEN
    origin: str = ""
    tls_certificate: str = ""
    tls_key: str = ""
    tls_at_proxy: bool = False
    proxies: tuple[str, ...] = ()
    masked: tuple[str, ...] | None = None
    passkey_sign_in: bool = True
    oidc: OidcSettings | None = None
    hooks: tuple[HookSettings, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """The listen address, the public address, and the hooks of a console."""

    host: str = "127.0.0.1"
    port: int = 8734
    origin: str = "http://localhost:8734"
    """The address that people type, without a path."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    masked: tuple[str, ...] | None = None
    """Names of keys whose values pages hide until a person clicks; None: the usual ones."""
    passkey_sign_in: bool = True
    """Whether a passkey signs in, and not only approves."""
    oidc: OidcSettings | None = None
    hooks: tuple[HookSettings, ...] = ()
    proxies: tuple[str, ...] = ()
    """The addresses of proxies that are trusted to name the client of a request."""
    state_dir: Path | None = None
    """The directory of waiting events; None: in memory alone."""

    @property
    def site(self) -> str:
        """The relying party of passkeys: the host of the origin."""
        return urlsplit(self.origin).hostname or ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches it: not through a proxy of another name, either."""
        return _is_loopback(self.host) and _is_own_name(self.origin)


def load_console_settings(
    config_dir: Path,
    *,
    listen: str | None = None,
    origin: str | None = None,
    state_dir: Path | None = None,
) -> ConsoleSettings:
    """Load the settings of the console.

    Args:
        config_dir: The directory of `config.toml`.
        listen: The address and port; overrides that of the file.
        origin: The public address; overrides that of the file.
        state_dir: The directory of waiting events.

    Raises:
        ConfigError: The table is malformed, or has a dangerous setting.
    """
    file = config_dir / "config.toml"
    found: Any = read_settings_file(config_dir).get("console", {})
    try:
        table = msgspec.convert(found, _Table)
    except msgspec.ValidationError as exc:
        raise ConfigError(f"{file}: [console]: {exc}") from exc
    host, port = _address(listen or table.listen)
    is_tls = bool(table.tls_certificate)
    if is_tls != bool(table.tls_key):
        raise ConfigError(f"{file}: [console]: tls_certificate and tls_key belong together")
    place = _origin(origin or table.origin, port, is_tls=is_tls)
    if not _is_loopback(host):
        _require_safe(table, place, is_tls=is_tls)
    for hook in table.hooks:
        _require_hook(hook)
    if len({hook.name for hook in table.hooks}) != len(table.hooks):
        raise ConfigError(f"{file}: [console]: expected a name of its own for each hook")
    _require_sign_in(table, is_local=_is_loopback(host) and _is_own_name(place))
    return ConsoleSettings(
        host=host,
        port=port,
        origin=place,
        tls_certificate=Path(table.tls_certificate) if is_tls else None,
        tls_key=Path(table.tls_key) if is_tls else None,
        masked=table.masked,
        passkey_sign_in=table.passkey_sign_in,
        oidc=table.oidc,
        hooks=table.hooks,
        proxies=table.proxies,
        state_dir=state_dir,
    )


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > _PORT_MAX:
        raise ConfigError(f"listen: expected an address and a port, as {_LISTEN}, found {text!r}")
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_own_name(origin: str) -> bool:
    """Whether people type a name that leads to their own machine."""
    return f".{urlsplit(origin).hostname}".endswith(".localhost")


def _origin(text: str, port: int, *, is_tls: bool) -> str:
    if not text:
        return f"{'https' if is_tls else 'http'}://localhost:{port}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or f"{parts.scheme}://{parts.netloc}" != text:
        raise ConfigError(
            "origin: expected what people type without a path, as https://console.example.com, "
            f"found {text!r}"
        )
    if parts.scheme == "http" and not _is_own_name(text):
        raise ConfigError(
            f"origin: expected https, or localhost, found {text!r}",
            hint="Browsers use passkeys and keep the session's cookie only there.",
        )
    return text


def _require_safe(table: _Table, origin: str, *, is_tls: bool) -> None:
    if not is_tls and not table.tls_at_proxy:
        raise ConfigError(
            f"listen: {table.listen} can be reached by others, and there is no TLS",
            hint="Set tls_certificate and tls_key in [console] of config.toml, or listen on "
            "127.0.0.1 behind a proxy that has TLS. If the proxy is on another machine of a "
            "private network: tls_at_proxy = true.",
        )
    if not origin.startswith("https:"):
        raise ConfigError(
            "origin: an address that others can reach needs one with https",
            hint='Set origin = "https://console.example.com" in [console] of config.toml.',
        )


def _require_hook(hook: HookSettings) -> None:
    named = f"hook {hook.name!r}"
    if not _HOOK_NAME.fullmatch(hook.name):
        raise ConfigError(f"{named}: expected a name of 1 to 64 of a-z, 0-9, dot, _ and -")
    if hook.shape not in _SHAPES:
        raise ConfigError(f"{named}: expected shape {', '.join(_SHAPES)}, found {hook.shape!r}")
    if unknown := sorted({*hook.events} - {*CONSOLE_EVENTS}):
        raise ConfigError(
            f"{named}: unknown event {unknown[0]!r}; known are {', '.join(CONSOLE_EVENTS)}"
        )
    if sum(map(bool, (hook.url, hook.url_file, hook.command))) != 1:
        raise ConfigError(f"{named}: expected one of url, url_file and command, found none or more")
    _require_hook_paths(hook, named)
    if hook.url:
        check_hook_url(hook.name, hook.url)
    if hook.shape == "generic" and not hook.command and not hook.secret_file:
        raise ConfigError(
            f"{named}: expected a secret_file, found none: the receiver could not check who sends",
            hint="Make one, (umask 077; openssl rand -base64 32 > FILE), and name it in "
            'secret_file. Slack and Teams check none: shape = "slack" or shape = "teams".',
        )


def _require_hook_paths(hook: HookSettings, named: str) -> None:
    program = hook.command[0] if hook.command else ""
    paths = {"url_file": hook.url_file, "secret_file": hook.secret_file, "command": program}
    for setting, path in paths.items():
        if path and not Path(path).is_absolute():
            raise ConfigError(f"{named}: expected an absolute path as {setting}, found {path!r}")


def check_hook_url(name: str, url: str) -> None:
    """Refuse an address that is unsafe for events.

    Raises:
        ConfigError: It is not an address, or others could read the events. The message does not
            repeat it.
    """
    if not _is_address(url):
        raise ConfigError(
            f"hook {name!r}: expected the address of a webhook: a host, and no login, no fragment "
            "and no space"
        )
    if not is_safe_address(url):
        raise ConfigError(
            f"hook {name!r}: expected https, or http on this machine",
            hint="The messages name threads and people; only TLS keeps them from others.",
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0 or "@" in parts.netloc or "#" in url:
            return False
    except ValueError:
        return False
    return url.isascii() and url.isprintable() and " " not in url


def _require_sign_in(table: _Table, *, is_local: bool) -> None:
    if table.oidc is not None:
        _require_oidc(table.oidc)
    elif not table.passkey_sign_in and not is_local:
        raise ConfigError(
            "passkey_sign_in: expected true, since nobody could sign in otherwise, found false",
            hint="Name a provider in [console.oidc] of config.toml, or leave it true.",
        )


def _require_oidc(oidc: OidcSettings) -> None:
    if not is_safe_address(oidc.issuer) or "?" in oidc.issuer:
        raise ConfigError(
            "oidc: expected as issuer an address with https, or on this machine, without a login, "
            f"a query or a fragment, found {oidc.issuer!r}",
            hint="It is what the provider calls itself: issuer in its "
            ".well-known/openid-configuration.",
        )
    if not oidc.client_id or not oidc.claim:
        raise ConfigError("oidc: expected a client_id and a claim, found an empty one")
    if oidc.client_secret_file and not Path(oidc.client_secret_file).is_absolute():
        raise ConfigError(
            "oidc: expected an absolute path as client_secret_file, found "
            f"{oidc.client_secret_file!r}"
        )


def is_safe_address(url: str) -> bool:
    """Whether nobody on the way to an address can read or change the data: https, or local."""
    if not _is_address(url):
        return False
    parts = urlsplit(url)
    return parts.scheme == "https" or (
        parts.scheme == "http" and _is_loopback(parts.hostname or "")
    )
