"""Flask extension for the database. `web/http/extensions.py` contains extensions for requests."""

from flask_sqlalchemy import SQLAlchemy

#: Database extension, which provides the engine and the sessions. The models have their own
#: declarative base (`models/base.py`).
db = SQLAlchemy(session_options={"expire_on_commit": False})
