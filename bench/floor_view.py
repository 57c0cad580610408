"""The floor of everything in Flask: a view that does nothing."""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def empty() -> str:
    """Answer with two letters."""
    return "ok"
