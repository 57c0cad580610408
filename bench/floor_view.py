"""The baseline for Flask: a view that does nothing."""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def empty() -> str:
    """Return two letters."""
    return "ok"
