"""Makes the app out of its parts."""

from __future__ import annotations

import os
from datetime import timedelta

import structlog
from flask import Flask
from flask_openapi3.models.info import Info
from flask_openapi3.openapi import OpenAPI
from flask_wtf import CSRFProtect
from werkzeug.middleware.proxy_fix import ProxyFix

from judge import logs
from judge.packages import survey
from judge.store import Queue, Store
from tools.steps import load_chapters
from web import (
    accounts,
    admin,
    api,
    assets,
    classes,
    course,
    display,
    drafts,
    errors,
    guard,
    i18n,
    limits,
    local,
    problems,
    script_texts,
    search,
    security,
    submissions,
)
from web.services import Services
from web.settings import Settings

log = structlog.get_logger("web")


def create_app(settings: Settings | None = None) -> Flask:
    """The site over an existing database (`Store.migrate` has been called). `settings` default to the
    environment's.

    A broken problem package is logged and left out. Raises FrontendMissing if nothing has been built.
    """
    settings = settings or Settings()
    app = OpenAPI(
        __name__,
        static_folder=None,
        doc_ui=False,  # `api.page` is ours: the library's would come from elsewhere
        info=Info(title="mini-sglang by hand", version="1"),
        security_schemes={"token": {"type": "http", "scheme": "bearer"}},
        validation_error_callback=api.errors.of_validation,
        validation_error_model=api.schemas.Refusal,
    )
    app.config.update(
        SECRET_KEY=settings.session_key(),
        # Ports of one host share cookies: two sites on this machine must not overwrite each other's.
        SESSION_COOKIE_NAME=f"course_{settings.port}",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Strict" if settings.accounts == "none" else "Lax",  # links in mails lead in
        SESSION_COOKIE_SECURE=settings.site_url.startswith("https:"),
        PERMANENT_SESSION_LIFETIME=timedelta(days=90),
        WTF_CSRF_TIME_LIMIT=None,  # a draft may stay open for days; the token lives as long as its session
        MAX_CONTENT_LENGTH=settings.max_body_kb * 1024,
        MAX_FORM_MEMORY_SIZE=settings.max_body_kb * 1024,
    )
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    store = Store(settings.url)
    found = survey()
    for error in found.refused:
        log.error("package_refused", file=str(error.file), line=error.line, reason=error.what)
    app.extensions["course"] = Services(
        settings=settings,
        store=store,
        queue=Queue(store),
        packages=found.packages,
        chapters=load_chapters(),
    )
    if settings.proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.proxies, x_proto=0)  # type: ignore[method-assign]
    security.init_app(app)
    i18n.init_app(app)
    guard.init_app(app)
    csrf = CSRFProtect(app)
    limits.init_app(app)
    errors.init_app(app)
    assets.init_app(app)
    display.init_app(app)
    script_texts.init_app(app)
    for feature in (local, accounts, admin, classes, course, drafts, problems, search, submissions):
        feature.init_app(app)
    api.init_app(app, csrf)
    return app


def from_environment() -> Flask:
    """What gunicorn calls. The token must not reach the environment of anything that is started from here."""
    settings = Settings()
    logs.configure(settings.log_format)
    app = create_app(settings)
    os.environ.pop("COURSE_TOKEN", None)
    return app
