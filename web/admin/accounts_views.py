"""Accounts, as the staff manages them."""

from __future__ import annotations

from collections.abc import Callable

from flask import abort, flash, redirect, render_template, request, url_for
from flask_babel import gettext
from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from web.accounts import passwords, people
from web.accounts.names import NameRefused
from web.accounts.people import AccountRefused
from web.accounts.tables import Event, Role, User
from web.admin.blueprint import Page, blueprint, me
from web.services import services

PAGE = 100


@blueprint.get("/accounts")
def accounts() -> str:
    """All accounts, or those whose names contain `?q=`; `?after=` goes on after a sign-in name."""
    return _page()


def _page(error: str = "", **more: object) -> str:
    if services().settings.accounts == "none":
        abort(404)
    wanted, after = request.args.get("q", "").strip()[:80], request.args.get("after", "")[:64]
    query = select(User).order_by(User.login).limit(PAGE)
    if wanted:
        pattern = "%" + wanted.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
        query = query.where(
            or_(User.login.like(pattern, escape="\\"), func.lower(User.name).like(pattern, escape="\\"))
        )
    if after:
        query = query.where(User.login > after)
    with services().store.read() as session:
        found = session.scalars(query).all()
        total = session.scalars(select(func.count()).select_from(User)).one()
    return render_template(
        "admin/accounts.html",
        found=found,
        total=total,
        q=wanted,
        page=PAGE,
        roles=list(Role),
        error=error,
        **more,
    )


@blueprint.post("/accounts")
def make_account() -> Page:
    """Make an account; its drawn password is shown this once."""
    drawn = passwords.draw()
    try:
        role = Role(request.form.get("role", ""))
        with services().store.write() as session:
            user = people.create_for(
                session,
                login=request.form.get("login", ""),
                name=request.form.get("name", ""),
                role=role,
                drawn=drawn,
            )
            people.note(session, me().key, Event.ACCOUNT_MADE, f"user {user.id}", role=str(role))
    except (NameRefused, AccountRefused) as refused:
        return _page(error=str(refused)), 422
    except ValueError:
        return _page(error=gettext("There is no such role.")), 422
    return _page(handed_over=(user, drawn.text))


@blueprint.post("/accounts/<int:number>/role")
def set_role(number: int) -> Page:
    try:
        role = Role(request.form.get("role", ""))
    except ValueError:
        abort(400)
    return _change(number, lambda session, user: people.set_role(session, user, role, me().key))


@blueprint.post("/accounts/<int:number>/disable")
def disable(number: int) -> Page:
    return _change(number, lambda session, user: people.disable(session, user, me().key))


@blueprint.post("/accounts/<int:number>/enable")
def enable(number: int) -> Page:
    return _change(number, lambda session, user: people.enable(session, user, me().key))


@blueprint.post("/accounts/<int:number>/delete")
def delete(number: int) -> Page:
    return _change(number, lambda session, user: people.remove(session, user, me().key))


@blueprint.post("/accounts/<int:number>/password")
def reset(number: int) -> Page:
    """Give an account a drawn password, shown this once."""
    try:
        with services().store.write() as session:
            user = session.get(User, number) if number < 2**63 else None
            if user is None:
                abort(404)
            password = people.reset_password(session, user, me().key)
    except AccountRefused as refused:
        return _page(error=str(refused)), 422
    return _page(handed_over=(user, password))


def _change(number: int, change: Callable[[Session, User], None]) -> Page:
    try:
        with services().store.write() as session:
            user = session.get(User, number) if number < 2**63 else None
            if user is None:
                abort(404)
            change(session, user)
    except AccountRefused as refused:
        flash(str(refused), "error")
    else:
        flash(gettext("Done."))
    return redirect(url_for(".accounts"), 303)
