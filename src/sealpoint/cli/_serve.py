# SPDX-License-Identifier: Apache-2.0
"""`serve`: the operator console, until it is interrupted."""

import sys
import threading
from typing import TYPE_CHECKING

import click

from sealpoint.cli._options import Verb
from sealpoint.cli._store import (
    StoreOptions,
    operator_option,
    shown_registry,
    shown_registry_options,
    store_options,
)
from sealpoint.cli._terminal import can_ask, print_code, print_error, print_line
from sealpoint.config import load_console_settings
from sealpoint.errors import ExtraMissing, SealpointError, UsageError
from sealpoint.signing import Passkey, Role
from sealpoint.views.words import Styled
from sealpoint.world import visible

if TYPE_CHECKING:
    from sealpoint.console import Console

_DIGITS = 8
_WAITING_MAX = 20


@click.command(cls=Verb)
@click.option("--listen", metavar="ADDRESS:PORT", help="Else of config.toml, or 127.0.0.1:8734.")
@click.option("--origin", metavar="URL", help="Where people reach it, if that is another place.")
@operator_option("The operator identity that the console acts with.")
@shown_registry_options
@store_options("namespace")
def serve(
    *,
    listen: str | None,
    origin: str | None,
    signer: str,
    registry_reference: str | None,
    untyped: bool,
    where: StoreOptions,
) -> None:
    """Serve the operator console, on this machine alone unless config.toml says otherwise.

    A link signs you in as the person of the identity; it works once. Approvals are signed by people
    with passkeys or on the command line, never by the console.
    """
    settings = load_console_settings(
        where.settings.config_dir,
        listen=listen,
        origin=origin,
        state_dir=where.settings.state_dir,
    )
    try:
        from sealpoint.console import Console  # noqa: PLC0415 (the extra may be missing)
    except ImportError as exc:
        raise ExtraMissing(
            f"console: expected {exc.name}, found it missing: pip install 'sealpoint[console]'"
        ) from exc
    registry = shown_registry(registry_reference, untyped=untyped)
    with where.reading(registry) as store, where.writing(signer) as acting:
        console = Console(store, acting, settings, admin=where.admin)
        identity = console.desk.watch.roster.identity(signer)
        if identity is None:
            raise UsageError(f"identity {signer!r}: the roster does not know it")
        name = f"'{visible(store.namespace)}'"
        print_line((Styled("The console", "good"), f" of namespace {name} is at:"))
        print_line(f"  {settings.origin}")
        if settings.is_local:
            terminal = _Terminal(console, where, identity.person)
            terminal.give_link()
            if can_ask():
                terminal.start()
        console.run()


class _Terminal:
    """Whoever sits where the console runs: gets links, and adds passkeys if the root key is here.

    A passkey is added by typing digits of its fingerprint, which the person reads from their own
    screen: nothing that reaches the console over the network adds one.
    """

    def __init__(self, console: "Console", where: StoreOptions, person: str) -> None:
        self._console = console
        self._where = where
        self._person = person
        self._made: dict[str, tuple[str, Passkey]] = {}

    def give_link(self) -> None:
        """Print a link that signs the person in."""
        print_line(f"Sign in as '{visible(self._person)}', once, within ten minutes:")
        print_code([f"  {self._console.sign_in_link(self._person)}"])

    def start(self) -> None:
        """Listen to what is typed, and tell of passkeys."""
        print_line(Styled("Enter gives a new link; Ctrl-C ends it.", "quiet"))
        self._console.desk.on_enrolled = self._tell
        threading.Thread(target=self._listen, daemon=True).start()

    def _tell(self, name: str, passkey: Passkey) -> None:
        digits = passkey.id.raw.hex()
        if len(self._made) < _WAITING_MAX:
            self._made[digits] = (name, passkey)
            print_line(
                f"Somebody made a passkey as '{visible(name)}', with fingerprint {digits[:12]}. "
                f"If that is on their screen, type its first {_DIGITS} digits to add it to the "
                "roster; the root key has to be here."
            )

    def _listen(self) -> None:
        for line in sys.stdin:
            digits = line.strip().lower()
            if not digits:
                self.give_link()
                continue
            found = [each for each in self._made if each.startswith(digits)]
            if len(digits) < _DIGITS or len(found) != 1:
                print_line("There is no such passkey.")
                continue
            try:
                self._add(*self._made.pop(found[0]))
            except SealpointError as error:
                print_error(error, as_json=False)

    def _add(self, name: str, passkey: Passkey) -> None:
        known = self._console.desk.watch.roster.identity(name)
        self._where.admin.keys.add(
            name,
            person=name if known is None else known.person,
            roles=[Role.APPROVER] if known is None else list(known.roles),
            namespaces=[self._where.settings.namespace] if known is None else known.namespaces,
            break_glass=known is not None and known.break_glass,
            passkey=passkey,
        )
        print_line((Styled("Added", "good"), f" the passkey of '{visible(name)}'."))
