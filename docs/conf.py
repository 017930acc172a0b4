# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds the documentation: offline, from Markdown, every reference checked."""

import builtins
import sys

from sphinx.application import Sphinx

import sealpoint

project = "Sealpoint"
author = "The Sealpoint authors"
copyright = author  # noqa: A001 - Sphinx reads this name
version = release = sealpoint.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["build"]
html_theme = "furo"
html_title = f"Sealpoint {release}"

# Of a console block the commands are copied, without their prompts and without what they print.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Types stand in the signatures; what comes before a colon under "Returns" is prose.
napoleon_use_rtype = False
# Docstrings use single back-ticks for code, as Markdown does.
default_role = "code"

nitpicky = True
# The build is offline, so that names of other projects cannot be looked up: those of Python itself
# and of the packages we name in signatures are taken as they are. Ours must resolve.
_FOREIGN = (
    *("accelerate", "attrs", "click", "lightning", "msgspec", "numpy", "ormsgpack", "pydantic"),
    *("rich", "torch", "transformers"),
)
_BUILTIN = "|".join(name for name in dir(builtins) if name.isidentifier())
_OTHERS = "|".join(sorted({*sys.stdlib_module_names, *_FOREIGN}))
nitpick_ignore_regex = [
    (r"py:.*", rf"({_BUILTIN})"),
    (r"py:.*", rf"({_OTHERS})(\..*)?"),
    # A type variable is documented by the signature it stands in.
    (r"py:.*", r"(sealpoint\w*\..*\.)?_?[A-Z]"),
    # What public objects hold or are made of, and nobody else makes: no names of the reference.
    (r"py:class", r"sealpoint\w*\..*\.(PositionList|Root|ReadFile|Core|Policies|RolloutBook)"),
    (r"py:class", r"sealpoint_models\..*\.(FolderSeal|ReadFolder|Vouched)"),
    (r"py:class", r"sealpoint\..*\.(Gate|StoreLocation|Thread(Reader|Retention|State))"),
    (r"py:class", r"sealpoint\..*\.(AskedRequest|Interrupted|PolicyTrial|TakenObject)"),
    # Documented under the name of their package, which loads them when they are used.
    (r"py:class", r"sealpoint\..*\._\w+\.(AuditRecord|DictForm|StandingPause)"),
    (r"py:class", r"sealpoint\.api\.checks\.(Diagnosis|StoreFacts)"),
    (r"py:class", r"(sealpoint\..*\._\w+\.)?(StoreWatch|WhyApproval)"),
]

for _name in sealpoint.api.__all__:
    getattr(sealpoint.api, _name)  # Sphinx does not see what is loaded when it is used

_HIDDEN_COLON = "\N{RATIO}"


def _fences_to_blocks(
    _app: Sphinx, _what: str, _name: str, _member: object, _options: object, lines: list[str]
) -> None:
    """Turn the Markdown fences of docstrings into blocks that autodoc understands."""
    found: list[str] = []
    inside = False
    for line in lines:
        if line.lstrip().startswith("```"):
            language = line.strip().strip("`") or "text"
            found += [""] if inside else ["", f".. code-block:: {language}", ""]
            inside = not inside
        else:
            found.append(f"    {line}" if inside else line)
    lines[:] = found


def _hide_colons(
    _app: Sphinx, what: str, _name: str, _member: object, _options: object, lines: list[str]
) -> None:
    """Keep napoleon from taking what stands before a colon for the type of an attribute."""
    if what in {"attribute", "data", "property"}:
        lines[:] = [line.replace(":", _HIDDEN_COLON) for line in lines]


def _show_colons(
    _app: Sphinx, _what: str, _name: str, _member: object, _options: object, lines: list[str]
) -> None:
    lines[:] = [line.replace(_HIDDEN_COLON, ":") for line in lines]


def setup(app: Sphinx) -> None:
    """Connect what this file adds to Sphinx; napoleon stands at priority 500."""
    app.connect("autodoc-process-docstring", _hide_colons, priority=300)
    app.connect("autodoc-process-docstring", _fences_to_blocks, priority=400)
    app.connect("autodoc-process-docstring", _show_colons, priority=600)
