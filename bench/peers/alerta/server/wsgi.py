"""The WSGI application for gunicorn: Alerta with its own settings."""

from alerta import create_app

application = create_app()
