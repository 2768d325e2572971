"""What is wrong with a request, in our own words: which field, what it must be, and what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from fastapi import Request
from pydantic import BaseModel

from labwright.domain.errors import FieldPath, Invalid, describe_validation_error
from labwright.server.models.fields import NOT_BLANK
from labwright.settings import nearest

_SHOWN = 5
_KNOWN_SHOWN = 20


def refusal(request: Request, faults: Sequence[Any], body: Any) -> Invalid:
    """One sentence for all of them; the first is the one that is pointed at."""
    form = _form_of(request)
    told = list(_told(list(faults), form, body).items())[:_SHOWN]
    named = [(place, f"{'.'.join(map(str, place)) or 'body'} {said}") for place, said in told]
    words = "; ".join(text for _, text in named)
    place = named[0][0] if named else ()
    return Invalid(f"{words}.", hint=_hint(faults, form), field=place, faults=named)


def _told(faults: list[Any], form: type[BaseModel] | None, body: Any) -> dict[FieldPath, str]:
    """By place. A name that is nearly right stands for the field that is missing without it."""
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    meant = {(*_place(fault)[:-1], _near(fault, form)) for fault in unknown}
    others = [fault for fault in faults if fault not in unknown]
    told: dict[FieldPath, list[str]] = {}
    for fault in [*unknown, *others]:
        place = _place(fault)
        if fault["type"] == "missing" and place in meant:
            continue
        said = told.setdefault(place if fault["type"] == "missing" else _within(body, place), [])
        said += [words] if (words := _words(fault)) not in said else []
    return {place: _either(said) for place, said in told.items()}


def _either(said: list[str]) -> str:
    """`must be a whole number or a list`: what each of several forms of a value would need."""
    first, *more = said
    return " or ".join([first, *(words.removeprefix("must be ") for words in more)])


def _words(fault: Any) -> str:
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] == NOT_BLANK:
        return "is empty"
    return describe_validation_error(fault)


def _hint(faults: Sequence[Any], form: type[BaseModel] | None) -> str:
    unknown = next((fault for fault in faults if fault["type"] == "extra_forbidden"), None)
    known = _names(form, _place(unknown)) if unknown else []
    if not unknown or not known:
        return _fields_wanted(faults, form) or "The fields and their types are in /docs."
    near = _near(unknown, form)
    shown = ", ".join(sorted(known)[:_KNOWN_SHOWN])
    return f"Did you mean {near}?" if near else f"Known: {shown}{', …' if len(known) > _KNOWN_SHOWN else ''}."


def _fields_wanted(faults: Sequence[Any], form: type[BaseModel] | None) -> str:
    """For `metric: loss`, where a metric has a key and a goal."""
    place: FieldPath = next((_place(fault) for fault in faults if fault["type"].startswith("model_")), ())
    names = _names(form, (*place, "")) if place else []
    return f"{place[-1]} has these: {', '.join(names)}." if names else ""


def _near(fault: Any, form: type[BaseModel] | None) -> str:
    place = _place(fault)
    return nearest(str(place[-1]), _names(form, place)) if place else ""


def _names(form: type[BaseModel] | None, place: FieldPath) -> list[str]:
    """The fields beside which this one stands."""
    for part in place[:-1]:
        field = form.model_fields.get(str(part)) if form else None
        form = next(_forms_in(field.annotation), None) if field else None
    return list(form.model_fields) if form else []


def _forms_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _forms_in(part)


def _form_of(request: Request) -> type[BaseModel] | None:
    body = getattr(request.scope.get("route"), "body_field", None)
    return next(_forms_in(body.field_info.annotation), None) if body else None


def _place(fault: Any) -> FieldPath:
    return tuple(part for part in fault["loc"] if part != "body")


def _within(body: Any, place: FieldPath) -> FieldPath:
    """As far as the request has it: what follows names a kind of value, which only the form knows."""
    for depth, part in enumerate(place):
        try:
            body = body[part]
        except (LookupError, TypeError):
            return place if depth == 0 else place[:depth]
    return place
