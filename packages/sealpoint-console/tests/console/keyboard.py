# SPDX-License-Identifier: Apache-2.0
"""A keyboard, and nothing else: no pointer, and no script that fills in a field."""

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

_STOPS_MAX = 120
_FOCUS = """() => {
  const it = document.activeElement;
  if (!it || it === document.body) return null;
  const style = getComputedStyle(it), box = it.getBoundingClientRect();
  const label = it.labels && it.labels.length ? it.labels[0] : it;
  return {
    tag: it.tagName.toLowerCase(),
    name: (it.getAttribute("aria-label") || label.textContent).replace(/\\s+/g, " ").trim(),
    isSeen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    isInView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    isInMain: document.getElementById("main").contains(it),
  };
}"""


@dataclass
class Keyboard:
    """The keys of somebody who does not use a pointer.

    Wherever they stop, the focus has to be drawn, and to be on the screen.
    """

    page: Page

    def focus(self) -> dict[str, Any] | None:
        """What has the focus; None: nothing that can have it."""
        found: dict[str, Any] | None = self.page.evaluate(_FOCUS)
        return found

    def press(self, *keys: str) -> "Keyboard":
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def type(self, text: str) -> "Keyboard":
        """Type a text."""
        self.page.keyboard.type(text)
        return self

    def to(self, tag: str, name: str, *, key: str = "Tab") -> "Keyboard":
        """Press Tab until something has the focus whose name begins so."""
        met = []
        for _ in range(_STOPS_MAX):
            self.press(key)
            found = self.focus()
            if found is None:  # the end of the page, or its beginning
                continue
            assert found["isSeen"], f"nobody sees that {found} has the focus"
            assert found["isInView"], f"{found} has the focus, outside of the screen"
            if found["tag"] == tag and found["name"].startswith(name):
                return self
            met.append(f"{found['tag']} {found['name'][:30]!r}")
        raise AssertionError(f"Tab never came to {tag} {name!r}, but to {', '.join(met[:60])}")

    def choose(self, tag: str, name: str) -> "Keyboard":
        """Go there, and press Enter."""
        return self.to(tag, name).press("Enter")

    def follow(self, name: str) -> "Keyboard":
        """Go to a link, press Enter, and wait for the page that it leads to."""
        self.to("a", name)
        with self.page.expect_navigation():
            self.press("Enter")
        return self

    def open_and_give(self, summary: str, reason: str, button: str) -> "Keyboard":
        """Unfold what can be done, give the reason, and do it."""
        self.choose("summary", summary)
        self.to("textarea", "Why").type(reason)
        return self.choose("button", button)
