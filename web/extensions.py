"""The Flask extensions, made here and given to the application in `app.py`."""

from flask_login import LoginManager
from flask_sqlalchemy import SQLAlchemy
from flask_wtf import CSRFProtect

#: Our tables have a base of their own (`models/base.py`) and run without Flask; this extension
#: gives them engines, sessions and their place in the application.
db = SQLAlchemy(session_options={"expire_on_commit": False})
login_manager = LoginManager()
csrf = CSRFProtect()
