# SPDX-License-Identifier: Apache-2.0
"""`serve`: the operator console, until it is interrupted."""

import shlex
import sys
import threading
import time
from collections import OrderedDict
from datetime import UTC, datetime

import click

from sealpoint.api import KeyInfo, KeyStatus
from sealpoint.cli.options import Verb
from sealpoint.cli.stores import (
    StoreOptions,
    operator_option,
    shown_registry,
    shown_registry_options,
    store_options,
)
from sealpoint.cli.terminal import (
    can_ask,
    can_show,
    print_code,
    print_error,
    print_line,
    print_note,
)
from sealpoint.errors import ConfigError, SealpointError, UsageError
from sealpoint.signing import Identity, Passkey, Role
from sealpoint.views.words import Styled
from sealpoint.world import visible
from sealpoint_console import Console
from sealpoint_console.settings import load_console_settings

_DIGITS = 8
_WAITING_MAX = 1_000
_TOLD_MAX = 5
_SWITCH_S = 0.0005
_TOLD_S = 60.0
"""The limits of passkeys that wait to be added, and of messages about them per period."""


@click.command(cls=Verb)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where to listen; else as config.toml says, or 127.0.0.1:8734.",
)
@click.option("--origin", metavar="URL", help="Where people reach it, if that is another address.")
@click.option(
    "--print-link",
    is_flag=True,
    help="Print a link also where there is no terminal: anyone who reads it can sign in.",
)
@operator_option("The operator identity that the console acts with.")
@shown_registry_options
@store_options("namespace")
def serve(
    *,
    listen: str | None,
    origin: str | None,
    print_link: bool,
    signer: str,
    registry_reference: str | None,
    untyped: bool | None,
    where: StoreOptions,
) -> None:
    """Serve the operator console, on this machine alone unless config.toml says otherwise.

    A link signs you in as the person of the identity; it works once. People sign approvals with
    passkeys or on the command line; the console never signs one.
    """
    settings = load_console_settings(
        where.settings.config_dir,
        listen=listen,
        origin=origin,
        state_dir=where.settings.state_dir,
    )
    registry = shown_registry(registry_reference, untyped=untyped is not False)
    with where.reading(registry) as store, where.writing(signer) as acting:
        console = Console(store, acting, settings, admin=where.admin)
        identity = console.desk.watch.roster.identity(signer)
        if identity is None:
            public = where.files.keys.facts(signer, mounted=True).public
            raise UsageError(
                f"identity {signer!r}: the roster does not know it",
                hint=f"Where the root key is: sealpoint keys add {signer} --person {signer} --role "
                f"operator --namespace {shlex.quote(store.namespace)} --public-key {public}",
            )
        _check_rights(identity, store.namespace, is_local=settings.is_local)
        if not settings.is_local:
            _check_keys(where.admin.keys.list())
        _tell_expiry(identity)
        console.listen()
        name = f"'{visible(store.namespace)}'"
        print_line((Styled("The console", "good"), f" of namespace {name} is at:"))
        print_line(f"  {settings.origin}")
        if settings.is_local:
            terminal = _Terminal(console, where, identity.person)
            if print_link or can_show():
                terminal.give_link()
            else:
                # In a journal, any reader could use it to sign in.
                print_note("There is no terminal, so no link is printed: --print-link prints one.")
            if can_ask():
                terminal.start()
        # Pages do not wait for the OS thread that reads the store.
        sys.setswitchinterval(_SWITCH_S)
        console.run()


_OWN = (
    "Give the console an identity of its own: sealpoint keys new console, then sealpoint keys add "
    "console --person console --role operator --namespace '*', then sealpoint serve --identity "
    "console."
)


def _check_rights(identity: Identity, namespace: str, *, is_local: bool) -> None:
    """Ensure that an attacker who takes the console over holds no key that approves.

    Raises:
        ConfigError: The identity may approve, and other machines reach the console.
    """
    if not (identity.may(Role.APPROVER, namespace) or identity.may_break_glass(namespace)):
        return
    found = f"identity {identity.name!r} may approve or break the glass"
    if not is_local:
        raise ConfigError(
            f"console: expected an identity that only operates, found that {found}", hint=_OWN
        )
    print_note(f"On this machine alone that is fine, for others it is not: {found}. {_OWN}")


def _tell_expiry(identity: Identity) -> None:
    """Report that the console can write nothing: people would notice only when they act."""
    ends = [each.expires for each in identity.keys]
    if ends and all(end is not None and end <= datetime.now(UTC) for end in ends):
        print_note(
            f"The key of {identity.name!r} has expired: pages are shown, and nothing can be done "
            f"on them. Where the root key is: sealpoint keys rotate {identity.name}"
        )


def _check_keys(keys: tuple[KeyInfo, ...]) -> None:
    """Ensure that an attacker who takes the console over finds no nearby key for approvals.

    Raises:
        ConfigError: The root's key, or an approver's, is in this directory, and has no passphrase.
    """
    living = (KeyStatus.IN_FORCE, KeyStatus.EXPIRES_SOON)
    found = [
        repr(each.name)
        for each in keys
        if each.here and not each.encrypted
        if each.status is KeyStatus.ROOT
        or (each.status in living and (Role.APPROVER in each.roles or each.break_glass))
    ]
    if found:
        raise ConfigError(
            "console: expected no private key on this machine that approves or makes approvers, "
            f"found {', '.join(found)}",
            hint="Move them to the machines of the people who use them; sealpoint doctor says how. "
            "Or give each a passphrase: sealpoint keys passphrase NAME",
        )


class _Terminal:
    """The operator's terminal: prints links, and adds passkeys if the root key is here.

    The operator adds a passkey by typing digits of its fingerprint, which the person reads from
    their own screen: nothing that reaches the console over the network adds one. An attacker who
    creates very many passkeys causes only a limited number of messages, and cannot keep others from
    adding theirs.
    """

    def __init__(self, console: Console, where: StoreOptions, person: str) -> None:
        self._console = console
        self._where = where
        self._person = person
        self._made: OrderedDict[str, tuple[str, Passkey]] = OrderedDict()
        self._told_at: list[float] = []
        self._lock = threading.Lock()

    def give_link(self) -> None:
        """Print a link that signs the person in."""
        print_line(f"Sign in as '{visible(self._person)}', once, within ten minutes:")
        print_code([f"  {self._console.sign_in_link(self._person)}"])

    def start(self) -> None:
        """Read typed input, and report new passkeys."""
        print_line(Styled("Enter gives a new link; Ctrl-C ends it.", "quiet"))
        self._console.desk.on_enrolled = self._tell
        threading.Thread(target=self._listen, daemon=True).start()

    def _tell(self, name: str, passkey: Passkey) -> None:
        digits, now = passkey.id.raw.hex(), time.monotonic()
        with self._lock:
            self._made[digits] = (name, passkey)
            if len(self._made) > _WAITING_MAX:
                self._made.popitem(last=False)
            self._told_at = [at for at in self._told_at if now - at < _TOLD_S]
            told = len(self._told_at)
            if told <= _TOLD_MAX:
                self._told_at.append(now)
        if told == _TOLD_MAX:
            print_line(
                "Many passkeys are being made, and no more are shown for a minute: the "
                f"first {_DIGITS} digits of any of them add it all the same."
            )
        elif told < _TOLD_MAX:
            is_new = self._console.desk.watch.roster.identity(name) is None
            whom = "a new person, who may approve then" if is_new else "whom the roster has"
            print_line(
                f"Someone made a passkey as '{visible(name)}' ({whom}), with fingerprint "
                f"{digits[:12]}. If that is on their screen, type its first {_DIGITS} digits to "
                "add it to the roster; the root key has to be here."
            )

    def _listen(self) -> None:
        for line in sys.stdin:
            digits = line.strip().lower()
            if not digits:
                self.give_link()
                continue
            with self._lock:
                found = [each for each in self._made if each.startswith(digits)]
                chosen = None
                if len(digits) >= _DIGITS and len(found) == 1:
                    chosen = self._made.pop(found[0])
            if chosen is None:
                print_line("There is no such passkey.")
                continue
            try:
                self._add(*chosen)
            except SealpointError as error:
                print_error(error, as_json=False)

    def _add(self, name: str, passkey: Passkey) -> None:
        is_new = self._console.desk.watch.roster.identity(name) is None
        # A person in the roster keeps their rights, and a further key adds none.
        self._where.admin.keys.add(
            name,
            person=name if is_new else None,
            roles=[Role.APPROVER] if is_new else None,
            namespaces=[self._where.settings.namespace] if is_new else None,
            passkey=passkey,
        )
        print_line((Styled("Added", "good"), f" the passkey of '{visible(name)}'."))
