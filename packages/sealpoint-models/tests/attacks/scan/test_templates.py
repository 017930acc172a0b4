# SPDX-License-Identifier: Apache-2.0
"""Chat templates that reach for more than their data, in every spelling that Jinja reads (A03).

None of them is rendered. What honest templates do, from those of widely used models, is a control.
"""

import json
import struct

import pytest

from sealpoint_models.scan import ScanVerdict, scan_bytes

_HOSTILE = (
    "{{ x.__class__ }}",
    "{{ x['__class__'] }}",
    "{{ cycler['_''_init_''_']['_''_globals_''_']['o''s'] }}",
    "{{ x['__cla' ~ 'ss__'] }}",
    "{{ x['__cla' + 'ss__'] }}",
    "{{ x['\\x5f\\x5fclass\\x5f\\x5f'] }}",
    "{{ x['_' * 2 ~ 'class'] }}",
    "{{ x['%c%cclass' % (95, 95)] }}",
    "{{ x['%s' % y] }}",
    "{{ x[('_', '_') | join] }}",
    "{{ x['__ssalc__' | reverse] }}",
    "{{ x['a__class__'[1:]] }}",
    "{{ x[y ~ z] }}",
    "{{ x[y + z] }}",
    "{{ x[y.replace('a', '_')] }}",
    "{{ x[y | default('__class__')] }}",
    "{{ x['__class__' if y else 'a'] }}",
    "{{ x[y or '__class__'] }}",
    "{{ x[dict(__class__=1) | first] }}",
    "{% set k = '_' ~ y %}{{ x[k] }}",
    "{% set k %}__class__{% endset %}{{ x[k] }}",
    "{% set s = 'x__class__' %}{{ x[s[1:]] }}",
    "{% set u = '_' %}{{ x[u * 2] }}",
    "{% set b = a %}{% set a = b %}{% set a = y ~ z %}{{ x[b] }}",
    "{% set d = {'a': '__class__'} %}{{ x[d.a] }}",
    "{% set d = {'__class__': 1} %}{% for k in d %}{{ x[k] }}{% endfor %}",
    "{% set n = namespace(k='a') %}{% set n.k = '__class__' %}{{ x[n.k] }}",
    "{% for k in ['__class__'] %}{{ x[k] }}{% endfor %}",
    "{% for k in ['_' ~ z] %}{{ x[k] }}{% endfor %}",
    "{% with k = '__class__' %}{{ x[k] }}{% endwith %}",
    "{% macro m(k) %}{{ x[k] }}{% endmacro %}{{ m('__class__') }}",
    "{% macro m(k='__class__') %}{{ x[k] }}{% endmacro %}{{ m() }}",
    "{% macro m(k) %}{{ x[k] }}{% endmacro %}{{ m(*y) }}",
    "{% macro m() %}{{ x[varargs[0]] }}{% endmacro %}{{ m('__class__') }}",
    (
        "{% macro m() %}{{ caller('__class__') }}{% endmacro %}"
        "{% call(k) m() %}{{ x[k] }}{% endcall %}"
    ),
    "{{ x | attr('__class__') }}",
    "{{ x | attr(k) }}",
    "{{ x | map(attribute='__class__') | list }}",
    "{{ x | map('attr', '__class__') | list }}",
    "{{ x | map(f) | list }}",
    "{{ x | selectattr('a.__class__') | list }}",
    "{{ x | sort(attribute='__class__') }}",
    "{{ x | groupby('__class__') }}",
    "{{ x | sort(**y) }}",
    "{{ '{0.__class__}'.format(x) }}",
    "{{ '{0[_a]}'.format(x) }}",
    "{{ '{0._a}'.format(x) }}",
    "{{ (y ~ z).format(x) }}",
    "{% set s = '{0.__class__}' %}{{ s.format(x) }}",
    "{{ '{0.__class__}'['format'](x) }}",
    "{{ ('{0.__class__}' | attr('format'))(x) }}",
    "{{ (['{0.__class__}'] | map(attribute='format') | first)(x) }}",
    "{{ x | sum('__class__') }}",
    "{{ x | max(false, '__class__') }}",
    "{{ x | sort(false, false, '__class__') }}",
    "{{ x | attr(name='__class__') }}",
    "{{ x | map('sum', '__class__') | list }}",
    "{% filter attr('__class__') %}x{% endfilter %}",
    "{% macro m(k) %}{{ x[k] }}{% endmacro %}{% set f = m %}{{ f('__class__') }}",
    "{% for k in y recursive %}{{ x[k] }}{{ loop(['__class__']) }}{% endfor %}",
    "{{ x[bos_token] }}",
    "{% set t = additional_special_tokens %}{{ x[t[0]] }}",
    "{{ self._TemplateReference__context }}",
    "{% include 'other' %}",
    "{% import 'other' as o %}",
    "{% extends 'other' %}",
)
_HONEST = (
    "{% for m in messages %}{{ '<|' ~ m['role'] ~ '|>' + m.content | trim }}{% endfor %}",
    "{{ messages[0].role }}{{ messages[-1]['content'] }}{{ messages[1:] }}{{ messages[::-1] }}",
    "{% for m in messages %}{{ messages[loop.index0 - 1].role }}{% endfor %}",
    "{% for k in tool %}{{ tool[k] }}{% endfor %}",
    "{% for k, v in tool.items() %}{{ tool[k] }}{% endfor %}",
    "{{ messages | selectattr('role', 'equalto', 'system') | list }}",
    "{% for tool in tools | sort(attribute='name') %}{{ tool | tojson }}{% endfor %}",
    "{% set n = namespace(i=0) %}{% set n.i = n.i + 1 %}{{ messages[n.i] }}",
    (
        "{% macro show(d, known) %}{% for k in d %}{{ d[k] }}{% endfor %}{% endmacro %}"
        "{{ show(tool.parameters, ['type']) }}{{ show({'type': t}, []) }}"
    ),
    "{% set names = {'a': 'A'} %}{{ names[spec.type] }}",
    "{{ content.split('</think>')[-1].lstrip('\\n') }}{{ '%s: %s' | format(a, b) }}",
    "{% generation %}{{ m.content }}{% endgeneration %}",
    "{% for m in messages %}{% if m.last %}{% break %}{% endif %}{% endfor %}{% do x.append(1) %}",
    "{{ raise_exception('roles: ' + role) }}{{ strftime_now('%Y-%m-%d') }}{{ '{}'.format(a) }}",
    "{{ spec['format'] }}{{ '{0.name}'.format(tool) }}",
)


def _gguf(template: str) -> bytes:
    data = template.encode()
    head = b"GGUF" + struct.pack("<I3Q", 3, 0, 1, 23) + b"tokenizer.chat_template"
    return head + struct.pack("<IQ", 8, len(data)) + data


def _files(template: str) -> dict[str, bytes]:
    """Where a template may lie."""
    several = [{"name": "tools", "template": template}]
    return {
        "m.gguf": _gguf(template),
        "chat_template.jinja": template.encode(),
        "model/tokenizer_config.json": json.dumps({"chat_template": template}).encode(),
        "chat_template.json": json.dumps({"chat_template": several}).encode(),
    }


@pytest.mark.parametrize("template", _HOSTILE)
def test_a_template_that_reaches_further_is_unsafe(template: str) -> None:
    """Wherever it lies."""
    for name, data in _files(template).items():
        report = scan_bytes(data, name)
        assert [each.rule for each in report.findings] == ["names-code"], name


@pytest.mark.parametrize("template", _HONEST)
def test_what_templates_of_models_do_is_a_note(template: str) -> None:
    """Wherever it lies."""
    for name, data in _files(template).items():
        report = scan_bytes(data, name)
        # A document around a template is text, of which nothing else is read.
        assert {each.rule for each in report.findings} <= {"not-read"}, name
        assert report.findings == () or name.endswith(".json"), name
        assert [each.rule for each in report.notes] == ["template"], name


@pytest.mark.parametrize(
    ("template", "rule"),
    [
        ("{{ x", "malformed"),
        ("{% unknown %}", "malformed"),
        ("{{ " + "(" * 20_000 + "x" + ")" * 20_000 + " }}", "malformed"),
        ("".join(f"{{% set a{n} = 1 %}}" for n in range(600)), "malformed"),
        ("{{ x }}" * 20_000, "limit"),
    ],
)
def test_what_jinja_does_not_read_is_no_pass(template: str, rule: str) -> None:
    """Nobody knows what another engine makes of it."""
    for name, data in _files(template).items():
        report = scan_bytes(data, name)
        assert report.verdict is not ScanVerdict.SAFE
        assert [each.rule for each in report.findings] == [rule], name


@pytest.mark.parametrize(
    "template",
    [
        "{{ x[9 ** 9 ** 9 ** 9] }}",
        "{{ x['a' * 9999999999] }}",
        "{{ x[[1] * 9999999999] }}",
        "{{ x['%9999999999d' % 1] }}",
        "".join(f"{{% set a{n} = a{n + 1} %}}" for n in range(200)) + "{{ x[a0] }}",
        "{{ " + "-".join(["a"] * 900) + " }}",
        "{% macro m(k) %}{{ m(k) }}{% endmacro %}" * 3000,
    ],
)
def test_nothing_in_a_template_is_worked_out(template: str) -> None:
    """It would take all memory, or never end; so that this test ends is what it shows."""
    report = scan_bytes(template.encode(), "chat_template.jinja")

    assert [each.rule for each in report.notes] == ["template"]


def test_many_templates_are_bounded_together() -> None:
    """One after the other they would take minutes."""
    several = [{"name": str(number), "template": "{{ x }}" * 9000} for number in range(50)]
    report = scan_bytes(json.dumps({"chat_template": several}).encode(), "tokenizer_config.json")

    assert [each.rule for each in report.findings] == ["limit"]
