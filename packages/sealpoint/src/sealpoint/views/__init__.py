# SPDX-License-Identifier: Apache-2.0
"""What people and programs are shown of a store, as plain data, and said once.

The command line and the console show the same things in two ways: documents for programs, and
values with words for people. Both are made here, below both; neither prints, styles or serves
anything here, and nothing here reads a store: what is shown is given by `sealpoint.api`. A module
loads no more than it needs, so that a verb which lists threads does not load what shows a request.
"""
