# SPDX-License-Identifier: Apache-2.0
"""The checks of `sealpoint doctor` for a store that holds the seals of a gateway."""

from sealpoint.api.checks import Examination, Examined, PartChecks, Severity
from sealpoint.errors import GuardExposed, UsageError
from sealpoint_openclaw._settings import GuardSettings

_EXPOSED = "gateway-reaches-guard"
_SAME = "gateway-same-user"

_LINES: dict[str, tuple[Severity, str]] = {
    _EXPOSED: (
        Severity.CRITICAL,
        "the user of OpenClaw's gateway cannot reach the keys, store or anchor of its guard",
    ),
    _SAME: (Severity.WARNING, "the guard of OpenClaw runs as another user than the gateway"),
}


def _look(exam: Examination, examined: Examined) -> None:
    if examined.store is None or examined.config_dir is None or examined.state_dir is None:
        return
    try:
        settings = GuardSettings.load(
            config_dir=str(examined.config_dir), state_dir=str(examined.state_dir)
        )
    except UsageError:
        return  # no gateway is guarded from here
    if settings.store != str(examined.store):
        return
    with exam.look(_EXPOSED, _SAME):
        try:
            settings.check_reach()
        except GuardExposed as error:
            exam.found(_EXPOSED, error.message, error.hint or "")
        if settings.is_same_user():
            exam.found(
                _SAME,
                f"{settings.folder.root}: guard and gateway run as one user: an agent that runs "
                "commands can read the guard's key",
                "Run the guard as root or another user, with a store and keys of its own.",
            )


CHECKS = PartChecks(lines=_LINES, look=_look)
