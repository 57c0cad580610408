"""The Flask extension for the database; those for requests are in `web/http/extensions.py`."""

from flask_sqlalchemy import SQLAlchemy

#: The models have a declarative base of their own (`models/base.py`); this extension gives the
#: application its engine and sessions.
db = SQLAlchemy(session_options={"expire_on_commit": False})
