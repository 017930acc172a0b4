# SPDX-License-Identifier: Apache-2.0
"""The operator console: pages on which people see, pause, approve and resume.

A server between people and a store. It writes with an operator identity of its own and says for
whom; it approves nothing, since approvals are signed by people, and it resumes nothing, since state
is released to workers by the gate. Everything that agents wrote is hostile text here.
"""

from sealpoint_console._oidc_provider import OidcProvider
from sealpoint_console._server import Console, make_app
from sealpoint_console.settings import ConsoleSettings

__all__ = ["Console", "ConsoleSettings", "OidcProvider", "make_app"]
