"""Signing in and out, the first administrator, one's own account."""

from __future__ import annotations

from flask import Blueprint, abort, flash, redirect, render_template, request, session, url_for
from flask_babel import gettext
from sqlalchemy import update
from werkzeug.wrappers import Response

from judge.store import now
from web.accounts import oidc as elsewhere
from web.accounts import passwords, people
from web.accounts.forms import ZONES, ChangePassword, NewAccount, NewPassword, Profile, SignIn
from web.accounts.identity import identity, sign_in, sign_out
from web.accounts.names import NameRefused, clean_name
from web.accounts.passwords import PasswordRefused
from web.accounts.people import AccountRefused
from web.accounts.tables import Event, Role, User
from web.addresses import own_page
from web.limits import (
    OWN_PASSWORD,
    REGISTRATIONS,
    SIGN_INS,
    WRONG_PASSWORDS,
    WRONG_PASSWORDS_ANYWHERE,
    remaining,
)
from web.services import only_with_accounts, services

Page = str | Response | tuple[str, int]
REFUSALS = (NameRefused, AccountRefused, PasswordRefused)

blueprint = Blueprint("accounts", __name__, template_folder="templates")


blueprint.before_request(only_with_accounts)


@blueprint.get("/login")
def enter() -> Page:
    """The form to sign in with. `next`: the page of ours to go on to."""
    if identity() is not None:
        return redirect(_back(request.args.get("next")), 303)
    return _sign_in_page(SignIn(formdata=None, next=request.args.get("next", "")))


@blueprint.post("/login")
@SIGN_INS
@WRONG_PASSWORDS
@WRONG_PASSWORDS_ANYWHERE
def try_to_enter() -> Page:
    """Sign in. The same answer for a name that does not exist as for a wrong password, after the same time."""
    form = SignIn()
    if not form.validate_on_submit():
        return _sign_in_page(form), 422
    with services().store.read() as db:
        user = people.by_login(db, form.login.data)
    kept = user.password_hash if user is not None else None
    if not passwords.matches(kept, form.password.data) or user is None:
        left = remaining()
        text = gettext("Sign-in name or password is wrong.")
        if left is not None and left <= 5:
            text += " " + gettext("%(n)s more tries in the next minutes.", n=max(0, left - 1))
        form.password.errors = [text]
        return _sign_in_page(form), 401
    if user.disabled_at is not None:
        form.login.errors = [gettext("This account is closed. Ask your teacher.")]
        return _sign_in_page(form), 403
    with services().store.write() as db:
        values: dict[str, object] = {"last_seen_at": now()}
        if kept is not None and passwords.is_outdated(kept):
            values["password_hash"] = passwords.rehashed(form.password.data)
        db.execute(update(User).where(User.id == user.id).values(**values))
    sign_in(user, remember=bool(form.remember.data))
    return redirect(_back(form.next.data), 303)


@blueprint.get("/login/oidc")
@SIGN_INS
def oidc() -> Page:
    """Go and sign in elsewhere."""
    return elsewhere.begin(_back(request.args.get("next")))


@blueprint.get("/login/oidc/back")
@SIGN_INS
def oidc_back() -> Page:
    """Back from there."""
    return elsewhere.come_back()


@blueprint.post("/logout")
def leave() -> Page:
    sign_out()
    return redirect(url_for(".enter"), 303)


@blueprint.route("/setup", methods=["GET", "POST"])
def set_up() -> Page:
    """Make the first administrator: for whoever came by the start address, while there is none."""
    if not session.get("may_set_up"):
        return render_template("errors/closed.html"), 403
    with services().store.read() as db:
        if people.admins(db):
            session.pop("may_set_up")
            return redirect(url_for(".enter"), 303)
    form = NewAccount()
    if form.validate_on_submit() and (user := made(form, Role.ADMIN)) is not None:
        sign_in(user, remember=False)
        flash(gettext("You administer this site now. Next: create an account for each teacher, here."))
        return redirect(url_for("admin.accounts"), 303)
    return render_template("accounts/new.html", form=form, first=True), 422 if form.errors else 200


@blueprint.route("/register", methods=["GET", "POST"])
@REGISTRATIONS
def register() -> Page:
    """Make an account for oneself, where registration is open."""
    if services().settings.registration != "open":
        abort(404)
    form = NewAccount()
    if form.validate_on_submit() and (user := made(form, Role.LEARNER)) is not None:
        sign_in(user, remember=False)
        return redirect(url_for("course.index"), 303)
    return render_template("accounts/new.html", form=form, first=False), 422 if form.errors else 200


@blueprint.route("/account", methods=["GET", "POST"])
def show() -> Page:
    """My account."""
    me = _me()
    form = Profile(name=me.name, time_zone=me.time_zone)
    if form.validate_on_submit():
        try:
            name = clean_name(form.name.data)
        except NameRefused as refused:
            form.name.errors = [str(refused)]
        else:
            with services().store.write() as db:
                user = db.get_one(User, me.id)
                user.name, user.time_zone = name, form.time_zone.data
            flash(gettext("Saved."))
            return redirect(url_for(".show"), 303)
    page = render_template("accounts/show.html", form=form, me=me, zones=sorted(ZONES))
    return page, 422 if form.errors else 200


@blueprint.route("/account/password", methods=["GET", "POST"])
@OWN_PASSWORD
def change_password() -> Page:
    """Choose a new password; all other sessions end."""
    me = _me()
    if me.password_hash is None:
        abort(404)
    form: NewPassword = NewPassword() if me.must_change_password else ChangePassword()
    if form.validate_on_submit():
        if isinstance(form, ChangePassword) and not passwords.matches(me.password_hash, form.current.data):
            form.current.errors = [gettext("This is not your current password.")]
            return render_template("accounts/password.html", form=form, me=me), 401
        try:
            hashed = passwords.hashed(form.new.data, login=me.login)
            if passwords.matches(me.password_hash, form.new.data):
                raise PasswordRefused(gettext("This is the password you have now: choose another one."))
            with services().store.write() as db:
                user = db.get_one(User, me.id)
                people.set_password(user, hashed)
                people.note(db, user.key, Event.PASSWORD_CHANGED, f"user {user.id}")
        except PasswordRefused as refused:
            form.new.errors = [str(refused)]
        else:
            sign_in(user, remember=session.permanent)
            flash(gettext("The password is changed. Other devices have to sign in again."))
            return redirect(url_for(".show"), 303)
    return render_template("accounts/password.html", form=form, me=me), 422 if form.errors else 200


@blueprint.post("/account/sessions")
def end_sessions() -> Page:
    """End all sessions of mine but this one."""
    with services().store.write() as db:
        user = db.get_one(User, _me().id)
        user.session_version += 1
    sign_in(user, remember=session.permanent)
    flash(gettext("All other devices are signed out."))
    return redirect(url_for(".show"), 303)


@blueprint.post("/account/delete")
@OWN_PASSWORD
def remove() -> Page:
    """Delete my account and all I submitted; field `password` proves that it is I. Who signs in elsewhere has none and
    types the sign-in name instead."""
    me = _me()
    given = request.form.get("password", "")
    if me.password_hash is None:
        if given.strip().lower() != me.login:
            flash(gettext("Nothing was deleted: this is not your sign-in name."), "error")
            return _account_page(me), 401
    elif not passwords.matches(me.password_hash, given):
        flash(gettext("Nothing was deleted: the password is wrong."), "error")
        return _account_page(me), 401
    try:
        with services().store.write() as db:
            people.leave(db, db.get_one(User, me.id))
    except AccountRefused as refused:
        flash(str(refused), "error")
        return _account_page(me), 409
    sign_out()
    return render_template("accounts/gone.html")


def _account_page(me: User) -> str:
    form = Profile(formdata=None, name=me.name, time_zone=me.time_zone)
    return render_template("accounts/show.html", form=form, me=me, zones=sorted(ZONES))


def made(form: NewAccount, role: Role) -> User | None:
    """The account that a form describes; None if it is refused, with the reason at its field."""
    try:
        hashed = passwords.hashed(form.new.data, login=form.login.data)
        with services().store.write() as db:
            if role is Role.ADMIN and people.admins(db):  # another browser was quicker
                abort(409)
            user = people.create(
                db, login=form.login.data, name=form.name.data, role=role, password_hash=hashed
            )
            # Signed in from here on: it is somebody's, and waits for nobody.
            db.execute(update(User).where(User.id == user.id).values(last_seen_at=now()))
            people.note(db, user.key, Event.REGISTERED, f"user {user.id}", role=str(role))
            return user
    except PasswordRefused as refused:
        form.new.errors = [str(refused)]
    except AccountRefused as refused:
        form.login.errors = [str(refused)]
    except NameRefused as refused:
        (form.login if refused.field == "login" else form.name).errors = [str(refused)]
    return None


def _sign_in_page(form: SignIn) -> str:
    return render_template("accounts/enter.html", form=form)


def _back(wanted: str | None) -> str:
    """The page of ours to go on to; the course if what is wanted is none."""
    return own_page(wanted, url_for("course.index"))


def _me() -> User:
    who = identity()
    if who is None or who.number is None:
        abort(401)
    with services().store.read() as db:
        return db.get_one(User, who.number)
