"""Values in a sweep's command: each arrives as one argument, and other braces survive."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labwright.domain.errors import Invalid
from labwright.domain.search.command_template import parse_command

SHOW = "import sys, json; print(json.dumps(sys.argv[1:]))"
NASTY = [
    "; rm -rf /",
    "$(touch pwned)",
    "`touch pwned`",
    "a b",
    "it's",
    'say "hi"',
    "$HOME",
    "\\",
    "a\nb",
    "",
    "*",
    "~",
    "!x",
    "&& false",
    "-n",
    "# not a comment",
    "{lr}",
    "é",
]


def filled(command: str, **values: object) -> str:
    return parse_command(command, tuple(values), ()).fill(values)


def arguments(command: str) -> list[str]:
    """Return the arguments that a program gets from bash."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("place", ["{x}", "'{x}'", '"{x}"', "''{x}", "a={x}", '"a={x}"', "'a={x}'"])
def test_any_value_arrives_as_one_argument(value: str, place: str) -> None:
    found = arguments(filled(f"{sys.executable} -c '{SHOW}' {place}", x=value))
    assert found == [place.strip("'\"").replace("{x}", value)]


@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30))
@settings(max_examples=40)
def test_any_text_survives_the_shell(value: str) -> None:
    found = arguments(filled(f"{sys.executable} -c '{SHOW}' {{x}} \"{{x}}\" '{{x}}'", x=value))
    assert found == [value] * 3


@pytest.mark.parametrize("value", NASTY)
def test_appended_value_arrives_as_one_argument(value: str) -> None:
    assert arguments(filled(f"{sys.executable} -c '{SHOW}'", x=value)) == ["--x", value]


def test_values_without_a_placeholder_are_appended_in_order() -> None:
    assert filled("train {lr}", lr=0.1, layers=[64, 32], flag=True, missing=None) == (
        "train 0.1 --layers '[64, 32]' --flag true"
    )


@pytest.mark.parametrize(
    "command",
    [
        "echo ${HOME} {x}",
        "awk '{print}' {x}",
        "awk '{print $1}' {x}",
        'echo "{\\"a\\": 1}" {x}',
        """curl -d '{"a": {"b": 2}}' {x}""",
        "find . -exec echo {} \\; {x}",
        "echo {a,b} {x}",
        "echo ${a:-{b}} {x}",
        "echo {x} # {y} isn't filled",
    ],
)
def test_other_braces_survive(command: str) -> None:
    assert filled(command, x=1) == command.replace("{x}", "1")


@pytest.mark.parametrize(("command", "text"), [("echo {{y}} {x}", "echo {y} 1"), ("echo \\{y} {x}", "echo \\{y} 1")])
def test_placeholder_can_be_escaped(command: str, text: str) -> None:
    assert filled(command, x=1) == text


def test_unknown_placeholder_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Invalid, match=r"\{lrr\} in the command does not match a parameter") as caught:
        parse_command('python -c "{lrr}"', ("lr",), ())
    assert "Parameters: lr" in caught.value.hint
    assert "{{lrr}}" in caught.value.hint
    assert caught.value.field == ("base_command",)


def test_unknown_words_in_single_quotes_are_kept_with_a_warning() -> None:
    parsed = parse_command("awk '{print}' --lr {lr}", ("lr",), ())
    assert "{print}" in parsed.warnings[0]


@pytest.mark.parametrize(
    "command",
    [
        "echo $(echo {x})",
        'echo "$(echo {x})"',
        "echo `echo {x}`",
        "cat <<END\n{x}\nEND",
        "echo $'{x}'",
        '"$(case a in a) echo {x};; esac)"',
    ],
)
def test_only_plain_words_are_filled_in_if_quoting_is_unclear(command: str) -> None:
    assert filled(command, x="cos-3.5") == command.replace("{x}", "cos-3.5")
    for value in ("; true", "a b", "$(x)", "'", '"'):
        with pytest.raises(Invalid, match="it would need quotes there"):
            filled(command, x=value)


@pytest.mark.parametrize("command", ["train # a note", "train &", "train;", "cat <<END", "train 'open", "train \\"])
def test_nothing_is_appended_where_it_would_be_lost(command: str) -> None:
    with pytest.raises(Invalid, match="cannot be appended"):
        parse_command(command, ("lr",), ())


def test_conditional_parameter_cannot_have_a_placeholder() -> None:
    with pytest.raises(Invalid, match="does not have a value in every configuration"):
        parse_command("train {momentum}", ("momentum",), ("momentum",))
