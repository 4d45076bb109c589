"""The site. One package a feature: `course` (chapters), `problems`, `submissions`; each has its views, its
templates and what only it needs. Shared by them: `services` (store, queue, packages of this app), `local`
(who may talk to us), `i18n`, `text` (Markdown and code as safe HTML), `display` (values of cases),
`assets`, `errors`.

`app.create_app` puts them together; `serve` runs them with a worker beside.
"""
