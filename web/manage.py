"""`python -m web.manage`: what is done on the machine itself, by whoever may read the database's file."""

from __future__ import annotations

import click
from flask import Flask

from judge.store import Store
from web import i18n, retention
from web.accounts import people
from web.accounts.identity import CONSOLE_KEY
from web.accounts.tables import Role, User
from web.settings import Settings


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Accounts, from the machine itself. The database is the one of COURSE_DATA_DIR or COURSE_DATABASE_URL."""


@main.command()
@click.argument("login")
def reset(login: str) -> None:
    """Give LOGIN a password for one sign-in; their open sessions end."""
    with _store() as store, store.write() as session:
        user = _found(people.by_login(session, login), login)
        password = people.reset_password(session, user, CONSOLE_KEY)
    click.echo(f"{login}: {password}  (to be changed at the next sign-in)")


@main.command()
@click.argument("login")
@click.argument("role", type=click.Choice([str(r) for r in Role]))
def role(login: str, role: str) -> None:
    """Make LOGIN a learner, a teacher or an admin."""
    with _store() as store, store.write() as session:
        people.set_role(session, _found(people.by_login(session, login), login), Role(role), CONSOLE_KEY)
    click.echo(f"{login} is {role} now")


@main.command()
def users() -> None:
    """List all accounts."""
    with _store() as store, store.read() as session:
        for user in session.query(User).order_by(User.login):
            click.echo(f"{user.login:<24} {user.role:<8} {'closed ' if user.disabled_at else ''}{user.name}")


@main.command()
@click.option("--submissions", type=float, metavar="DAYS", help="Forget submissions that arrived longer ago.")
@click.option(
    "--accounts", type=float, metavar="DAYS", help="Delete learners' accounts not used for so long."
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
def forget(submissions: float | None, accounts: float | None, dry_run: bool) -> None:
    """Delete what is older than the site wants to keep. Members of classes that are not archived keep everything."""
    if submissions is None and accounts is None:
        raise click.UsageError("say what to forget: --submissions DAYS, --accounts DAYS")
    if min(d for d in (submissions, accounts) if d is not None) < 1:
        raise click.UsageError("DAYS is at least 1")
    would = "would be " if dry_run else ""
    with _store() as store:
        if submissions is not None:
            count = retention.old_submissions(store, submissions, dry=dry_run, actor=CONSOLE_KEY)
            click.echo(f"{count} submissions {would}forgotten")
        if accounts is not None:
            names = retention.unused_accounts(store, accounts, dry=dry_run, actor=CONSOLE_KEY)
            click.echo(f"{len(names)} accounts {would}deleted{': ' if names else ''}{', '.join(names)}")


class _store:
    """The store, inside an app context in which refusals can be worded."""

    def __enter__(self) -> Store:
        app = Flask(__name__)
        i18n.init_app(app)
        self._context = app.test_request_context(headers={"Accept-Language": "en"})
        self._context.push()
        self._store = Store(Settings().url)
        self._store.migrate()
        return self._store

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._store.close()
        self._context.pop()
        if isinstance(error, people.AccountRefused):
            raise click.ClickException(str(error)) from error


def _found(user: User | None, login: str) -> User:
    if user is None:
        raise click.ClickException(f"there is no account {login!r}; `python -m web.manage users` lists them")
    return user


if __name__ == "__main__":
    main()
