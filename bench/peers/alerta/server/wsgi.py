"""The program that gunicorn serves: Alerta with its own settings."""

from alerta import create_app

application = create_app()
