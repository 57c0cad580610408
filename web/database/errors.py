"""SQLAlchemy's errors for views, which do not import SQLAlchemy."""

from sqlalchemy.exc import SQLAlchemyError

__all__ = ["SQLAlchemyError"]
