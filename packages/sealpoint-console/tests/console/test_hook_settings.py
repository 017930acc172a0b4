# SPDX-License-Identifier: Apache-2.0
"""Hooks in `config.toml`: what could not work, or would tell others, is refused before it runs."""

from pathlib import Path

import pytest

from sealpoint.errors import ConfigError
from sealpoint_console.settings import CONSOLE_EVENTS, HookSettings, load_console_settings

_GOOD = 'name = "desk"\nurl = "https://desk.example.com/hook"\nsecret_file = "/etc/desk.secret"'


def _load(tmp_path: Path, *hooks: str) -> tuple[HookSettings, ...]:
    text = "\n".join(f"[[console.hooks]]\n{hook}" for hook in hooks)
    (tmp_path / "config.toml").write_text(text)
    return load_console_settings(tmp_path).hooks


def test_hooks_are_read_with_what_they_take(tmp_path: Path) -> None:
    """Without a list a hook takes everything but wishes to resume, which are for workers."""
    worker = 'name = "worker"\ncommand = ["/usr/local/bin/go-on"]\nevents = ["resume-wanted"]'
    slack = 'name = "slack"\nurl_file = "/etc/slack.url"\nshape = "slack"'
    first, second, third = _load(tmp_path, _GOOD, worker, slack)

    assert {*CONSOLE_EVENTS} - {*first.events} == {"resume-wanted"}
    assert second.events == ("resume-wanted",)
    assert third.shape == "slack"


@pytest.mark.parametrize(
    ("hook", "words"),
    [
        ('name = "Desk"\nurl = "https://x/"', "name"),
        ('name = "d"', "one of url, url_file and command"),
        (f'{_GOOD}\ncommand = ["/bin/true"]', "found none or more"),
        (f'{_GOOD}\nshape = "irc"', "shape"),
        (f'{_GOOD}\nevents = ["everything"]', "unknown event"),
        ('name = "d"\nurl = "https://x/"\nsecret_file = "here"', "absolute path"),
        ('name = "d"\ncommand = ["true"]', "absolute path"),
        ('name = "d"\nurl = "https://x/"', "secret_file"),
        ('name = "d"\nurl = "http://desk.example.com/"\nshape = "slack"', "expected https"),
        ('name = "d"\nurl = "file:///etc/passwd"\nshape = "slack"', "address of a webhook"),
        ('name = "d"\nurl = "ftp://localhost/"\nshape = "slack"', "expected https"),
        ('name = "d"\nurl = "https://a:b@x/"\nshape = "slack"', "no login"),
        ('name = "d"\nurl = "https://x:99999/"\nshape = "slack"', "address of a webhook"),
        ('name = "d"\nurl = "https://x/a b"\nshape = "slack"', "no space"),
        ('name = "d"\nurl = "https://x/\\r\\nhost: y"\nshape = "slack"', "address of a webhook"),
        ('name = "d"\nurl = "https://[::1/"\nshape = "slack"', "address of a webhook"),
        ('name = "d"\nurl = "https://x/"\nsecret = "x"', "unknown field"),
    ],
)
def test_a_hook_that_cannot_work_is_refused(tmp_path: Path, hook: str, words: str) -> None:
    """The message says what was expected."""
    with pytest.raises(ConfigError, match=words):
        _load(tmp_path, hook)


def test_two_hooks_of_one_name_are_refused(tmp_path: Path) -> None:
    """What waits is kept by name."""
    with pytest.raises(ConfigError, match="a name of its own"):
        _load(tmp_path, _GOOD, _GOOD)
