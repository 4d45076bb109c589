"""Joining a class by its link."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask_babel import gettext

from web.accounts.forms import NewAccount
from web.accounts.identity import identity, sign_in
from web.accounts.tables import Role
from web.accounts.views import made
from web.classes import links
from web.classes.blueprint import Page
from web.classes.tables import Class, Invitation
from web.errors import Told
from web.limits import JOINS
from web.services import only_with_accounts, services

joining = Blueprint("joining", __name__, url_prefix="/join", template_folder="templates")


joining.before_request(only_with_accounts)


@joining.route("/<token>", methods=["GET", "POST"])
@JOINS
def show(token: str) -> Page:
    """Say which class it is. Whoever has signed in joins with a button; others sign in, or make an account where the
    site lets them."""
    link, into = _found(token)
    who = identity()
    may_register = services().settings.registration in ("link", "open")
    form = NewAccount()
    if who is None and may_register and form.validate_on_submit() and (user := made(form, Role.LEARNER)):
        sign_in(user, remember=False)
        return _join(link, into, user.id)
    if who is not None and request.method == "POST":
        return _join(link, into, who.number or 0)
    page = render_template("classes/join.html", into=into, token=token, form=form, may_register=may_register)
    return page, 422 if form.errors and who is None else 200


def _join(link: Invitation, into: Class, user: int) -> Page:
    with services().store.write() as session:
        if links.is_removed(session, into.id, user):
            raise Told(
                403,
                gettext("You were taken out of this class"),
                gettext(
                    "Its links do not let you in any more. Ask the teacher of “%(name)s” to add you again.",
                    name=into.name,
                ),
            )
        joined = links.use(session, link, user)
    if not joined:
        abort(404)
    flash(gettext("Welcome to the class “%(name)s”.", name=into.name))
    return redirect(url_for("classes.show", number=into.id), 303)


def _found(token: str) -> tuple[Invitation, Class]:
    with services().store.read() as session:
        found = links.find(session, token)
    if found is None:
        abort(404)
    return found
