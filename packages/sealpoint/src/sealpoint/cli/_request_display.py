# SPDX-License-Identifier: Apache-2.0
"""A request on a terminal: the complete output of `sealpoint.views.requests`, section by section.

Folded text is indented more than any heading, so that no text can imitate another part.
"""

from collections.abc import Iterator, Sequence

from sealpoint.adapters import framework_named, framework_packages
from sealpoint.api import ExaminedRequest
from sealpoint.cli.terminal import print_line, print_lines
from sealpoint.views.readable import TextField
from sealpoint.views.requests import Section, SectionKind, request_view
from sealpoint.views.words import Line, Styled

_LABEL_COLUMNS = 12
_HANGS = {SectionKind.RELEASE: 4, SectionKind.WORLD_DIFF: 4}


def print_examined(examined: ExaminedRequest) -> None:
    """Print all of a request."""
    view = request_view(examined, hint=registry_hint)
    print_line(view.title)
    for section in view.sections:
        print_line("")
        _print_section(section)


def registry_hint(fault: str) -> str:
    """Return the option for reading a state with types of an application or a framework."""
    hint = "Name the application's registry, graph or workflow: --registry MODULE:OBJECT"
    found = {
        framework.name: framework.registry
        for package in framework_packages()
        if f"'{package}." in fault
        for framework in (framework_named(package),)
    }
    for name, registry in found.items():
        hint += f"; for the types of {name} alone, --registry {registry}"
    return hint


def _print_section(section: Section) -> None:
    for title in section.titles:
        print_line(Styled(title, "heading"))
    if section.note is not None:
        print_line(section.note)
    print_lines(_field_lines(section.fields), hang=_LABEL_COLUMNS)
    print_lines(section.lines, hang=_HANGS.get(section.kind, 2))


def _field_lines(fields: Sequence[TextField]) -> Iterator[Line]:
    """Yield names and values; folded text stays in the column of the values."""
    for field in fields:
        lines = field.lines
        if len(lines) > 1:
            lines = tuple(f"| {line}".rstrip() for line in lines)
        texts = [Styled(line, field.style) for line in lines] or [Styled("none", "quiet")]
        for place, text in enumerate(texts):
            label = Styled(f"{'' if place else field.name:<{_LABEL_COLUMNS}}", "quiet")
            yield "  ", label, text
