"""The forms of accounts. What only the database can say (a name is taken, a password is wrong) the views add."""

from __future__ import annotations

from zoneinfo import available_timezones

from flask_babel import lazy_gettext as _
from flask_wtf import FlaskForm
from wtforms import BooleanField, HiddenField, PasswordField, StringField
from wtforms.validators import InputRequired, Length, ValidationError

MISSING = _("This field is empty: fill it in.")
ZONES = frozenset(available_timezones())


def _text(label: str, most: int, autocomplete: str, **more: str) -> StringField:
    return StringField(
        label,
        [InputRequired(MISSING), Length(max=most, message=_("At most %(max)d characters."))],
        render_kw={"autocomplete": autocomplete, "maxlength": most, "autocapitalize": "off", **more},
    )


def _password(label: str, autocomplete: str) -> PasswordField:
    return PasswordField(label, [InputRequired(MISSING)], render_kw={"autocomplete": autocomplete})


class SignIn(FlaskForm):  # type: ignore[misc]  # it ships no types
    login = _text(_("Sign-in name"), 200, "username", spellcheck="false")
    password = _password(_("Password"), "current-password")
    remember = BooleanField(_("Stay signed in on this device (not on a shared one)"))
    next = HiddenField()


class NewPassword(FlaskForm):  # type: ignore[misc]
    new = _password(_("New password"), "new-password")
    again = _password(_("The new password once more"), "new-password")

    def validate_again(self, field: PasswordField) -> None:
        if field.data != self.new.data:
            raise ValidationError(_("The two are different: type the new password once more."))


class ChangePassword(NewPassword):
    current = _password(_("Current password"), "current-password")


class NewAccount(NewPassword):
    login = _text(_("Sign-in name"), 64, "username", spellcheck="false")
    name = _text(_("Name, as others see it"), 80, "name")


class Profile(FlaskForm):  # type: ignore[misc]
    name = _text(_("Name, as others see it"), 80, "name")
    time_zone = StringField(
        _("Time zone"), render_kw={"list": "zones", "placeholder": "Asia/Shanghai", "autocomplete": "off"}
    )

    def validate_time_zone(self, field: StringField) -> None:
        field.data = (field.data or "").strip()
        if field.data and field.data not in ZONES:
            raise ValidationError(
                _(
                    "There is no such time zone. Choose one of the list, such as Asia/Shanghai, or leave it empty."
                )
            )
