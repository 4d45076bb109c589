"""The page of my account's tokens: make one, see which there are, revoke one."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, url_for
from flask_babel import gettext
from flask_babel import lazy_gettext as _
from flask_wtf import FlaskForm
from werkzeug.wrappers import Response
from wtforms import SelectField, StringField
from wtforms.fields.choices import SelectChoice
from wtforms.validators import DataRequired, Length

from web.accounts.forms import MISSING
from web.accounts.identity import identity
from web.accounts.tables import User
from web.api import tokens
from web.services import services

Page = str | Response | tuple[str, int]

blueprint = Blueprint("tokens", __name__, url_prefix="/account/tokens", template_folder="templates")


class NewToken(FlaskForm):  # type: ignore[misc]  # it ships no types
    name = StringField(
        _("What it is for"),
        [DataRequired(MISSING), Length(max=80, message=_("At most %(max)d characters."))],
        render_kw={"maxlength": 80, "autocomplete": "off"},
    )
    days = SelectField(
        _("Valid for"),
        choices=[
            SelectChoice("30", _("30 days")),
            SelectChoice("90", _("90 days")),
            SelectChoice("365", _("a year")),
        ],
        default="90",
    )


@blueprint.get("")
def show() -> Page:
    return _page(NewToken(formdata=None))


@blueprint.post("")
def make() -> Page:
    """Make a token. The answer is the one page that shows it."""
    number, form = _account(), NewToken()
    if not form.validate_on_submit():
        return _page(form), 422
    try:
        with services().store.write() as db:
            _token, text = tokens.make(
                db, db.get_one(User, number), name=form.name.data.strip(), days=int(form.days.data)
            )
    except tokens.TokenRefused as refused:
        form.name.errors = [str(refused)]
        return _page(form), 409
    return _page(NewToken(formdata=None), text), 201


@blueprint.post("/<int:token>/revoke")
def revoke(token: int) -> Page:
    """End a token of mine. 404 for one that I do not have."""
    number = _account()
    with services().store.write() as db:
        if token >= 2**63 or not tokens.revoke(db, db.get_one(User, number), token):
            abort(404)
    flash(gettext("The token is revoked: nothing is done with it any more."))
    return redirect(url_for(".show"), 303)


def _account() -> int:
    """The id of my account; aborts with 404 where there are no accounts."""
    who = identity()
    if who is None or who.number is None:
        abort(404)
    return who.number


def _page(form: NewToken, new: str = "") -> str:
    with services().store.read() as db:
        mine = tokens.listed(db, _account())
    return render_template("api/tokens.html", form=form, tokens=mine, new=new)
