"""The forms of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask_babel import lazy_gettext as _
from flask_wtf import FlaskForm
from wtforms import BooleanField, IntegerField, SelectField, StringField, TextAreaField
from wtforms.fields.choices import SelectChoice
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, Optional, ValidationError

from web.accounts.forms import MISSING, ZONES
from web.classes.times import TimeRefused, to_seconds

MOST_TEXT = 4000


class LocalTime(StringField):  # type: ignore[misc]  # it ships no types
    """A local time of the class's zone. `seconds`: the moment it means; None for an empty field."""

    errors: Sequence[object]

    def __init__(self, label: str, validators: list[object], **more: Any) -> None:
        super().__init__(label, validators, render_kw={"type": "datetime-local"}, **more)
        self.seconds: float | None = None

    def read(self, zone: str) -> bool:
        """Find the moment. False, with the reason as the field's error, if there is none."""
        if not self.data:
            return True
        try:
            self.seconds = to_seconds(self.data, zone)
        except TimeRefused as refused:
            self.errors = [*self.errors, str(refused)]
            return False
        return True


def _title(label: str) -> StringField:
    return StringField(
        label,
        [DataRequired(MISSING), Length(max=80, message=_("At most %(max)d characters."))],
        render_kw={"maxlength": 80},
    )


class NewClass(FlaskForm):  # type: ignore[misc]
    name = _title(_("Name of the class"))
    time_zone = StringField(
        _("Time zone of its deadlines"),
        [InputRequired(MISSING)],
        render_kw={"list": "zones", "autocomplete": "off"},
    )

    def validate_time_zone(self, field: StringField) -> None:
        field.data = (field.data or "").strip()
        if field.data not in ZONES:
            raise ValidationError(
                _("There is no such time zone. Choose one of the list, such as Asia/Shanghai.")
            )


class NewAssignment(FlaskForm):  # type: ignore[misc]
    title = _title(_("Title"))
    opens = LocalTime(_("Opens"), [InputRequired(MISSING)])
    deadline = LocalTime(_("Deadline"), [InputRequired(MISSING)])
    late_until = LocalTime(_("Late submissions until"), [Optional()])
    late_percent = IntegerField(
        _("What a late solution counts, in percent"),
        [InputRequired(MISSING), NumberRange(0, 100, _("From 0 to 100."))],
        default=50,
    )
    attempts = IntegerField(
        _("Submissions to each problem that count"),
        [Optional(), NumberRange(1, 1000, _("From 1 to 1000, or empty for all."))],
    )
    partial = BooleanField(_("Passed cases count in part when a problem is not solved"))
    references_at = LocalTime(_("References hidden until"), [Optional()])

    def read(self, zone: str) -> bool:
        """Find the moments and hold them against each other."""
        times = (self.opens, self.deadline, self.late_until, self.references_at)
        if not all([field.read(zone) for field in times]):  # not a generator: every field gets its error
            return False
        assert self.opens.seconds is not None
        assert self.deadline.seconds is not None
        if self.deadline.seconds <= self.opens.seconds:
            self.deadline.errors = [*self.deadline.errors, _("The deadline must be after the opening.")]
            return False
        if self.late_until.seconds is not None and self.late_until.seconds <= self.deadline.seconds:
            self.late_until.errors = [
                *self.late_until.errors,
                _("This must be after the deadline, or empty."),
            ]
            return False
        return True


class OwnDeadline(FlaskForm):  # type: ignore[misc]
    deadline = LocalTime(_("Deadline for this learner"), [InputRequired(MISSING)])


class NewAnnouncement(FlaskForm):  # type: ignore[misc]
    text = TextAreaField(
        _("Announcement"),
        [DataRequired(MISSING), Length(max=MOST_TEXT, message=_("At most %(max)d characters."))],
        render_kw={"rows": 4, "maxlength": MOST_TEXT},
    )


class NewInvitation(FlaskForm):  # type: ignore[misc]
    days = IntegerField(
        _("Valid for days"), [InputRequired(MISSING), NumberRange(1, 365, _("From 1 to 365."))], default=14
    )
    most_uses = IntegerField(
        _("For how many people"),
        [InputRequired(MISSING), NumberRange(1, 1000, _("From 1 to 1000."))],
        default=60,
    )


class AddPerson(FlaskForm):  # type: ignore[misc]
    login = _title(_("Sign-in name"))
    name = StringField(
        _("Name (for a new account)"), [Optional(), Length(max=80)], render_kw={"maxlength": 80}
    )
    part = SelectField(
        _("As"), choices=[SelectChoice("learner", _("learner")), SelectChoice("teacher", _("teacher"))]
    )
