"""The Flask extensions, made here and given to the application in `app.py`."""

from flask_login import LoginManager
from flask_sqlalchemy import SQLAlchemy
from flask_wtf import CSRFProtect

#: The models have a declarative base of their own (`models/base.py`); this extension gives the
#: application its engine and sessions.
db = SQLAlchemy(session_options={"expire_on_commit": False})
login_manager = LoginManager()
csrf = CSRFProtect()
