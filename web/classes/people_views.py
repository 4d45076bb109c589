"""The people of a class: roster import and export, adding one, removing, new passwords, links."""

from __future__ import annotations

from typing import Any

from flask import Response, abort, flash, redirect, render_template, request, url_for
from flask_babel import gettext
from sqlalchemy.orm import Session

from web.accounts import passwords, people
from web.accounts.names import NameRefused
from web.accounts.people import AccountRefused
from web.accounts.tables import Event, Role, User
from web.classes import links, roster
from web.classes.access import Seat, learner_or_404, seat
from web.classes.blueprint import Page, blueprint
from web.classes.csv_files import csv_response
from web.classes.forms import AddPerson, NewInvitation
from web.classes.tables import Invitation, Member, Part
from web.forms import fields
from web.services import services


@blueprint.get("/<int:number>/people", endpoint="people_show")
def show(number: int) -> str:
    return _page(seat(number, teaching=True))


def _page(mine: Seat, form: AddPerson | None = None, error: str = "", **more: Any) -> str:
    with services().store.read() as session:
        return render_template(
            "classes/people.html",
            mine=mine,
            learners=roster.members(session, mine.of.id, Part.LEARNER),
            teachers=roster.members(session, mine.of.id, Part.TEACHER),
            form=form or AddPerson(formdata=None),
            link_form=NewInvitation(formdata=None),
            links=links.open_ones(session, mine.of.id),
            error=error,
            may_register=services().settings.registration in ("link", "open"),
            **more,
        )


@blueprint.post("/<int:number>/people/roster", endpoint="people_preview")
def preview(number: int) -> Page:
    """Read a roster and say what would come of it; nothing changes yet."""
    mine = seat(number, teaching=True, changing=True)
    data = fields().get("file", b"")
    try:
        if not data:
            raise roster.RosterRefused(gettext("Choose a file first: a CSV with sign-in name and name."))
        found = roster.read(data)
    except roster.RosterRefused as refused:
        return _page(mine, error=str(refused)), 422
    with services().store.read() as session:
        known = roster.known_logins(session, found.rows)
        inside = {user.login for part in Part for _, user in roster.members(session, number, part)}
    # With a head, so that no person is taken for one, and the delimiter is not guessed from a name.
    text = "\n".join(["login,name", *(f"{row.login},{_quoted(row.name)}" for row in found.rows)])
    return render_template(
        "classes/roster.html", mine=mine, found=found, known=known, inside=inside, text=text
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@blueprint.post("/<int:number>/people/enter", endpoint="people_enter")
def enter(number: int) -> Page:
    """Enter the people of a roster that `preview` has shown; the page shows the new passwords, this once."""
    mine = seat(number, teaching=True, changing=True)
    try:
        found = roster.read(fields().get("rows", b""))
    except roster.RosterRefused as refused:
        return _page(mine, error=str(refused)), 422
    if found.bad:
        return _page(mine, error=gettext("The roster was changed on its way: choose the file again.")), 422
    with services().store.read() as session:
        known = roster.known_logins(session, found.rows)
    drawn = roster.draw(found.rows, known)
    with services().store.write() as session:
        entered = roster.enter(session, mine.of, found.rows, drawn, mine.who.key)
    return render_template("classes/entered.html", mine=mine, entered=entered)


@blueprint.post("/<int:number>/people/add", endpoint="people_add")
def add(number: int) -> Page:
    """Add one person: an account that exists, or, with a name, a new one."""
    mine = seat(number, teaching=True, changing=True)
    form = AddPerson()
    if not form.validate_on_submit():
        return _page(mine, form), 422
    drawn = None
    try:
        with services().store.write() as session:
            user = people.by_login(session, form.login.data)
            if user is None:
                if not (form.name.data or "").strip():
                    text = gettext(
                        "There is no account with this sign-in name. Write a name too, and one is created."
                    )
                    raise NameRefused(text)
                drawn = passwords.draw()
                user = people.create_for(session, login=form.login.data, name=form.name.data, drawn=drawn)
            if session.get(Member, (number, user.id)) is not None:
                raise AccountRefused(gettext("%(name)s is in the class already.", name=user.name))
            made = drawn is not None
            roster.bring_in(
                session,
                Member(class_id=number, user_id=user.id, part=form.part.data, account_made_here=made),
            )
            people.note(
                session, mine.who.key, Event.ADDED, f"class {number}", user=user.id, part=form.part.data
            )
    except (NameRefused, AccountRefused) as refused:
        (form.name if getattr(refused, "field", "") == "name" else form.login).errors = [str(refused)]
        return _page(mine, form), 422
    if drawn is not None:
        return _page(mine, handed_over=(user, drawn.text))
    flash(gettext("%(name)s is in the class now.", name=user.name))
    return redirect(url_for(".people_show", number=number), 303)


@blueprint.get("/<int:number>/people.csv", endpoint="people_export")
def export(number: int) -> Response:
    """The roster as CSV; what `preview` reads back."""
    mine = seat(number, teaching=True)
    with services().store.read() as session:
        rows = [(user.login, user.name) for _, user in roster.members(session, mine.of.id, Part.LEARNER)]
    return csv_response(f"class-{number}.csv", [(gettext("login"), gettext("name")), *rows])


@blueprint.post("/<int:number>/people/<int:user>/remove", endpoint="people_remove")
def remove(number: int, user: int) -> Page:
    """Take somebody out of the class. The account stays, and so does what it submitted; links don't let it in again."""
    mine = seat(number, teaching=True, changing=True)
    with services().store.write() as session:
        found = session.get(Member, (number, user)) if user < 2**63 else None
        if found is None:
            abort(404)
        if found.part == Part.TEACHER and len(roster.members(session, number, Part.TEACHER)) < 2:
            flash(gettext("A class needs a teacher: add another one first."), "error")
        else:
            roster.take_out(session, found)
            people.note(session, mine.who.key, Event.REMOVED, f"class {number}", user=user)
            flash(_removed(session, session.get_one(User, user), number))
            if user == mine.who.number and not mine.who.is_admin:
                return redirect(url_for(".index"), 303)
    return redirect(url_for(".people_show", number=number), 303)


def _removed(session: Session, account: User, number: int) -> str:
    text: str = gettext(
        "%(name)s is out of the class. Links do not let this account in again; to take it back, add it by its sign-in name.",
        name=account.name,
    )
    if services().settings.registration in ("link", "open") and links.open_ones(session, number):
        text += " " + gettext(
            "The class has an open invite link, and whoever has it can create another account: close it below if you do not "
            "want that."
        )
    return text


@blueprint.post("/<int:number>/people/<int:user>/password", endpoint="people_new_password")
def new_password(number: int, user: int) -> Page:
    """Give a learner a new password, shown this once. Only for accounts that this class made, and whose owner does not
    sign in elsewhere."""
    mine = seat(number, teaching=True, changing=True)
    member, account = learner_or_404(mine, user)
    try:
        with services().store.write() as session:
            changed = session.get_one(User, account.id)
            if not member.account_made_here or changed.role != Role.LEARNER:
                text = gettext(
                    "The account of %(name)s was not created by this class. An administrator can give it a new password.",
                    name=changed.name,
                )
                raise AccountRefused(text)
            password = people.reset_password(session, changed, mine.who.key)
    except AccountRefused as refused:
        return _page(mine, error=str(refused)), 403
    return _page(mine, handed_over=(changed, password))


@blueprint.post("/<int:number>/links", endpoint="people_make_link")
def make_link(number: int) -> Page:
    mine = seat(number, teaching=True, changing=True)
    form = NewInvitation()
    if not form.validate_on_submit():
        return _page(mine, error=" ".join(e for es in form.errors.values() for e in map(str, es))), 422
    with services().store.write() as session:
        token = links.make(session, number, days=form.days.data, most_uses=form.most_uses.data)
        people.note(session, mine.who.key, Event.LINK_MADE, f"class {number}", days=form.days.data)
    base = services().settings.site_url or request.host_url.rstrip("/")
    return _page(mine, new_link=base + url_for("joining.show", token=token))


@blueprint.post("/<int:number>/links/<int:link>/close", endpoint="people_close_link")
def close_link(number: int, link: int) -> Page:
    mine = seat(number, teaching=True, changing=True)
    with services().store.write() as session:
        found = session.get(Invitation, link) if link < 2**63 else None
        if found is None or found.class_id != number:
            abort(404)
        links.close(session, found)
        people.note(session, mine.who.key, Event.LINK_CLOSED, f"class {number}")
    return redirect(url_for(".people_show", number=number), 303)
