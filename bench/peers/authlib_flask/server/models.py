"""The tables of Authlib's documentation, in SQLAlchemy on Postgres."""

import os
import time

from authlib.integrations.sqla_oauth2 import (
    OAuth2AuthorizationCodeMixin,
    OAuth2ClientMixin,
    OAuth2TokenMixin,
)
from authlib.oauth2.rfc8628 import DeviceCredentialMixin
from sqlalchemy import Column, ForeignKey, Integer, String, Text, create_engine, make_url
from sqlalchemy.orm import declarative_base, relationship, scoped_session, sessionmaker

engine = create_engine(make_url(os.environ["DATABASE_URL"]).set(drivername="postgresql+psycopg"))
session = scoped_session(sessionmaker(engine))
Base = declarative_base()


class User(Base):
    __tablename__ = "users"
    id = Column(Integer, primary_key=True)
    username = Column(String(40), unique=True)

    def get_user_id(self):
        return self.id


class Client(Base, OAuth2ClientMixin):
    __tablename__ = "clients"
    id = Column(Integer, primary_key=True)


class AuthorizationCode(Base, OAuth2AuthorizationCodeMixin):
    __tablename__ = "codes"
    id = Column(Integer, primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id"))
    user = relationship(User)


class Token(Base, OAuth2TokenMixin):
    __tablename__ = "tokens"
    id = Column(Integer, primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id"))
    user = relationship(User)


class DeviceCredential(Base, DeviceCredentialMixin):
    __tablename__ = "device_credentials"
    id = Column(Integer, primary_key=True)
    client_id = Column(String(48), nullable=False)
    device_code = Column(String(120), unique=True, nullable=False)
    user_code = Column(String(20), unique=True, nullable=False)
    scope = Column(Text, default="")
    expires_at = Column(Integer, nullable=False)
    interval = Column(Integer, default=5)
    last_polled_at = Column(Integer, default=0)
    user_id = Column(Integer, ForeignKey("users.id"))

    def get_client_id(self):
        return self.client_id

    def get_scope(self):
        return self.scope

    def get_user_code(self):
        return self.user_code

    def is_expired(self):
        return self.expires_at < time.time()
