# SPDX-License-Identifier: Apache-2.0
"""The displayed form of a store's content, as plain data for people and programs.

The command line and the console show the same content in two ways: documents for programs, and
values with words for people. This package makes both, as a layer below both. It prints, styles and
serves nothing, and reads no store: `sealpoint.api` provides the content. A module loads only what
it needs, so that a command that lists threads does not load the code for requests.
"""
